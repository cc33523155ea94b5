#include "comm/launcher.h"

#include <fmt/format.h>
#include <mpi.h>

#include <cstdlib>
#include <fstream>

#include "comm/mpi_library.h"
#include "kernels/base/error.h"

namespace shardmat {
namespace {

struct Variables {
  const char *rank, *size, *launcher;
};
constexpr Variables kOfMpi[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun"},
                                {"PMI_RANK", "PMI_SIZE", "a launcher with PMI (MPICH's mpiexec, srun)"},
                                {"PMIX_RANK", "PMIX_SIZE", "a launcher with PMIx"},
                                {"MPI_LOCALRANKID", "MPI_LOCALNRANKS", "MPICH's mpiexec"},
                                {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MVAPICH's launcher"}};
constexpr Variables kOfSlurm{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "Slurm's srun"};

/// The number in an environment variable, or `otherwise`.
int number(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  return *end == '\0' && value >= 0 && value < (1L << 30) ? static_cast<int>(value) : otherwise;
}

}  // namespace

Launch launch() {
  Launch found;
  const auto look = [&](const Variables& v) {
    const int size = number(v.size, 0);
    if (size >= 1 && (found.launcher.empty() || size > found.size)) found = {number(v.rank, 0), size, v.size, v.launcher};
  };
  for (const Variables& v : kOfMpi) look(v);
  if (found.launcher.empty()) look(kOfSlurm);
  return found;
}

void require_world_of_launcher() {
  const Launch told = launch();
  if (told.size == 1) return;
  int ranks = 0;
  if (MPI_Comm_size(MPI_COMM_WORLD, &ranks) != MPI_SUCCESS || ranks != 1) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("{0} started {1} processes ({2}={1}), but each is alone: this program uses {3}, which that launcher "
                  "does not know. All would do the same work and write the same files. Start it with the launcher of "
                  "{3}: {4} -n {1} {5}{6}. For one process on purpose: env -u {2} {5}",
                  told.launcher, told.size, told.variable, mpi_library(), mpirun(), command_line(),
                  std::getenv("SLURM_JOB_ID") == nullptr
                      ? std::string()
                      : fmt::format(", or srun --mpi=pmix -n {} {}", told.size, command_line())));
}

std::string command_line() {
  // That no shell changes.
  constexpr const char* kPlainCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  std::ifstream file("/proc/self/cmdline");
  std::string line;
  for (std::string word; std::getline(file, word, '\0');) {
    if (word.empty() || word.find_first_not_of(kPlainCharacters) != std::string::npos) {
      std::string quoted;
      for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
      word = "'" + quoted + "'";
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return line;
}

}  // namespace shardmat
