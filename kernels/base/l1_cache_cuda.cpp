#include <cuda_runtime.h>

#include "kernels/base/cuda_check.h"
#include "kernels/base/error.h"
#include "kernels/base/l1_cache.h"

namespace shardmat {
namespace {

int attribute(cudaDeviceAttr which, Device device) {
  int value = 0;
  SHARDMAT_CUDA_CHECK(cudaDeviceGetAttribute(&value, which, device.ordinal));
  return value;
}

}  // namespace

L1Cache l1_cache(Device device) {
  if (device.backend != Backend::cuda) throw Error(ErrorKind::internal, "only GPUs have multiprocessors with an L1 cache");
  // L1 and shared memory are one memory, whose size CUDA does not tell: of the sizes that there are, the smallest above what
  // can be shared memory (7.5: 64 of 96 kB, 7.0: 96 of 128, 8.0: 164 of 192, 8.6: 100 of 128, 9.0: 228 of 256).
  const int most_shared = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, device) >> 10;
  std::int64_t kilobytes = 256;
  for (const int size : {192, 128, 96})
    if (most_shared < size) kilobytes = size;
  return {kilobytes << 10, attribute(cudaDevAttrMultiProcessorCount, device),
          attribute(cudaDevAttrMaxThreadsPerMultiProcessor, device)};
}

}  // namespace shardmat
