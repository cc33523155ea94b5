#include "tools/cli/hidden_option.h"

#include <CLI/CLI.hpp>

namespace shardmat::tools {

void hide_option(const CommandLine& command, const std::string& name) { command.cli11().get_option(name)->group(""); }

}  // namespace shardmat::tools
