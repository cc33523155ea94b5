// What CUDA tells of itself and of how GPUs reach each other. Makes no context on a GPU.
//
// Threads: any thread, several at a time.
#pragma once

namespace shardmat {

/// As 13000 for 13.0; 0 without CUDA, or without a driver.
struct CudaVersions {
  int runtime = 0;  ///< that this program uses
  int driver = 0;   ///< the latest that the driver supports
};
CudaVersions cuda_versions();

/// True if this process has asked CUDA for its devices, so that CUDA has started and answers at once.
bool cuda_has_started();

/// True if a kernel on CUDA device `from` can read and write the memory of device `to`. REQUIRES: both exist.
bool reaches_memory(int from, int to);

/// Bytes that the memory of CUDA device `ordinal` moves in a second at most, by its clock and width; 0 if the driver does
/// not tell, as of some virtual GPUs.
double most_memory_rate(int ordinal);

}  // namespace shardmat
