// Which program this is, and with what it was built.
#pragma once

#include <string>

namespace shardmat::tools {

/// "0.1.0".
std::string version_number();
/// As git describes it; empty if the program was not built in a git checkout.
std::string commit();
/// "0.1.0", followed by " (COMMIT)" if it was built in a git checkout.
std::string version();

/// The version and a line each for compiler, CUDA, MPI, HDF5 and NCCL: for --version.
std::string version_text();

}  // namespace shardmat::tools
