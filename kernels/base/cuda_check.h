// Checked CUDA runtime calls, for files that are compiled only with CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "kernels/base/error.h"

namespace shardmat::cuda {

/// Throws Error(resources) for out-of-memory, else Error(internal), naming the call and its place.
inline void check(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  throw Error(status == cudaErrorMemoryAllocation ? ErrorKind::resources : ErrorKind::internal,
              std::string("CUDA: ") + cudaGetErrorString(status) + " in " + call + " (" + file + ":" + std::to_string(line) + ")");
}

}  // namespace shardmat::cuda

#define SHARDMAT_CUDA_CHECK(call) ::shardmat::cuda::check((call), #call, __FILE__, __LINE__)
