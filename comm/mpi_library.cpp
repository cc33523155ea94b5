#include "comm/mpi_library.h"

#include <mpi.h>

#include <string_view>

namespace shardmat {

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "this MPI";
  const std::string_view version(text, static_cast<std::size_t>(length));
  return std::string(version.substr(0, version.find_first_of(",\n")));
}

std::string mpirun() { return SHARDMAT_MPIRUN; }

}  // namespace shardmat
