// Launches that overlap with the kernel before.
#pragma once

#include "kernels/cuda/launch.h"

namespace shardmat::cuda {

inline int capability(Device device) {
  int major = 0;
  SHARDMAT_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device.ordinal));
  return major;
}

/// As launch_grid(), but where the device can (capability 9.0), blocks start while the kernel before in the stream is still at work:
/// kernels of a few microseconds then follow each other without a gap. REQUIRES: `kernel` calls after_previous() before it
/// touches memory.
template <class... Parameters, class... Arguments>
void launch_grid_early(void (*kernel)(Parameters...), std::int64_t blocks, std::int64_t across, dim3 block_size,
                       std::size_t shared_bytes, const Stream& stream, Arguments&&... arguments) {
  if (capability(stream.device()) < 9)
    return launch_grid(kernel, blocks, across, block_size, shared_bytes, stream, std::forward<Arguments>(arguments)...);
  if (blocks == 0 || across == 0) return;
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(across));
  config.blockDim = block_size;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = native(stream);
  config.attrs = &early;
  config.numAttrs = 1;
  SHARDMAT_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...));
}

#ifdef __CUDACC__
/// Lets the kernel behind start, which waits here, too, and waits until what came before is done and can be seen.
__device__ inline void after_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
#endif
}
#endif

}  // namespace shardmat::cuda
