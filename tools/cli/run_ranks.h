// A command that runs on all ranks: MPI from start to end, and errors turned into one message and one exit code.
#pragma once

#include <functional>

#include "comm/communicator.h"
#include "tools/cli/options.h"

namespace shardmat::tools {

/// What a command does if MPI has one rank although the launcher started several processes.
enum class World {
  of_launcher,  ///< refuses to run: all would do the same work and write the same files
  any,          ///< works
};

/// Starts MPI, refuses ranks that were given different options or files, runs `work` on every rank, ends MPI. An error that
/// all ranks agreed on is said once and is the exit code of all; after a lost rank every survivor says so and leaves without
/// waiting for the others, also one that is lost while MPI starts, which may take 30 s where `timeout_seconds` is less, or
/// ends. What is said names options of `command`.
int run_ranks(const CommandLine& command, double timeout_seconds, const std::function<int(Communicator&)>& work,
              World world = World::of_launcher);

}  // namespace shardmat::tools
