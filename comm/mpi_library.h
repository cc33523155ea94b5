// The MPI that this program runs with.
//
// Threads: any thread, several at a time.
#pragma once

#include <string>

namespace shardmat {

/// "Open MPI v4.1.4": the library that is loaded, up to its first comma. MPI need not be started.
std::string mpi_library();
/// The launcher of the MPI that this program was built with.
std::string mpirun();

}  // namespace shardmat
