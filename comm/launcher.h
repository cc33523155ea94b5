// What the command that started this process says of it: mpirun, mpiexec, srun.
#pragma once

#include <string>

namespace shardmat {

/// This process's rank and the number of ranks as the launcher tells them before MPI starts; 0 of 1 if it was started alone.
struct Launch {
  int rank = 0, size = 1;
  std::string variable;  ///< of the environment, which tells the size; empty if none does
  std::string launcher;  ///< "Open MPI's mpirun", "MPICH's mpiexec", "Slurm's srun"; empty if it was started alone
};
/// Of the launchers that started each other, the one with the most ranks counts. Slurm counts if no other launcher is there:
/// mpirun starts its helpers by srun. Ranks of an allocation (SLURM_NTASKS) do not count, only those of a step.
Launch launch();

/// Throws Error(usage) if MPI has one rank although the launcher started several processes: it belongs to another MPI, and
/// all processes would do the same work and write the same files. REQUIRES: MPI was started. Not collective.
void require_world_of_launcher();

/// This process's command line as a shell would take it.
std::string command_line();

}  // namespace shardmat
