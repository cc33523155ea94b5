// What shardmat and shardmat-bench do with a command line: parse it, run the command, and turn an error into a message and
// an exit code.
#pragma once

#include <span>

#include "tools/cli/command.h"

namespace shardmat::tools {

/// The whole of main(): runs the one of `commands` that the command line names, and returns the exit code.
int run_program(int argc, char** argv, std::span<const AddCommand> commands);

}  // namespace shardmat::tools
