// Options for tests, which no help shows.
#pragma once

#include <string>

#include "tools/cli/options.h"

namespace shardmat::tools {

/// REQUIRES: the command has the option.
void hide_option(const CommandLine& command, const std::string& name);

}  // namespace shardmat::tools
