// Checked CUDA runtime calls, for files that are compiled only with CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "kernels/base/error.h"

namespace shardmat::cuda {

/// Throws Error(resources) if memory is short or the build has no code for the GPU, else Error(internal), naming the call
/// and its place.
inline void check(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  if (status == cudaErrorNoKernelImageForDevice)
    throw Error(ErrorKind::resources,
                "this build of Shardmat has no code for this GPU: configure it with "
                "-DCMAKE_CUDA_ARCHITECTURES=native on a machine with such a GPU");
  throw Error(
      status == cudaErrorMemoryAllocation ? ErrorKind::resources : ErrorKind::internal,
      std::string("CUDA: ") + cudaGetErrorString(status) + " in " + call + " (" + file + ":" + std::to_string(line) + ")");
}

}  // namespace shardmat::cuda

#define SHARDMAT_CUDA_CHECK(call) ::shardmat::cuda::check((call), #call, __FILE__, __LINE__)
