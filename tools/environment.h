// What the program reads from its environment: its own variables, and what a launcher says.
#pragma once

#include <string>

namespace shardmat::tools {

/// Help text of every SHARDMAT_ variable, for --help.
std::string environment_help();

/// Throws Error(usage) with the nearest right name for a SHARDMAT_ variable that does not exist.
void check_environment();

/// The variable's value, or `fallback`.
std::string environment(const char* name, const char* fallback);

/// This process's rank and the number of ranks as the launcher (Open MPI, Slurm, MPICH) tells before MPI_Init; 0 of 1 if it
/// was started alone.
struct Launch {
  int rank = 0, size = 1;
};
Launch launch();

/// Throws Error(usage) if a command that works alone was started by mpirun with several ranks.
void require_single_process(const char* command);

/// This process's command line as a shell would take it.
std::string command_line();

}  // namespace shardmat::tools
