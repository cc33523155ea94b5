#include "tools/cli/version.h"

#include <fmt/format.h>
#include <mpi.h>

#include <string_view>

#include "comm/nccl/nccl_communicator.h"

namespace shardmat::tools {
namespace {

constexpr std::string_view kCommit = SHARDMAT_COMMIT;  // empty outside a git checkout

/// "Open MPI v4.1.4": the library that is loaded, up to its first comma.
std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "unknown";
  const std::string_view version(text, static_cast<std::size_t>(length));
  return std::string(version.substr(0, version.find_first_of(",\n")));
}

}  // namespace

std::string version_number() { return SHARDMAT_VERSION; }
std::string commit() { return std::string(kCommit); }

std::string version() {
  return kCommit.empty() ? std::string(SHARDMAT_VERSION) : fmt::format("{} ({})", SHARDMAT_VERSION, kCommit);
}

std::string version_text() {
  const std::string nccl = nccl_version();
  return fmt::format("shardmat {}\ncompiler  {}\nCUDA      {}\nMPI       {}\nHDF5      {}\nNCCL      {}", version(),
                     SHARDMAT_COMPILER, SHARDMAT_CUDA_VERSION, mpi_version(), SHARDMAT_HDF5_VERSION,
                     nccl.empty() ? "left out" : nccl);
}

}  // namespace shardmat::tools
