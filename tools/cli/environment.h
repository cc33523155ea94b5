// What the program reads from its environment: its own variables, and what a launcher says (comm/launcher.h).
#pragma once

#include <string>

#include "comm/launcher.h"

namespace shardmat::tools {

/// Help text of every SHARDMAT_ variable, for --help.
std::string environment_help();

/// Throws Error(usage) with the nearest right name for a SHARDMAT_ variable that does not exist.
void check_environment();

/// The variable's value, or `fallback`.
std::string environment(const char* name, const char* fallback);

/// Throws Error(usage) if a command that works alone was started by a launcher with several ranks.
void require_single_process(const char* command);

}  // namespace shardmat::tools
