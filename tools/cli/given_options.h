// What a command was given, for comparison with other ranks.
#pragma once

#include <string>
#include <vector>

#include "comm/same_on_all_ranks.h"
#include "tools/cli/options.h"

namespace shardmat::tools {

/// The program's version, the command, and each option that was given, with what this rank finds in the files that options
/// name. Files that a command writes do not count.
std::vector<Given> given_options(const CommandLine& command);
/// "--rtol" of each option that was given, by its first name.
std::vector<std::string> names_of_given(const CommandLine& command);

}  // namespace shardmat::tools
