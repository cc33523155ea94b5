#include <cuda_runtime_api.h>

#include "kernels/base/cuda_check.h"
#include "kernels/base/cuda_facts.h"
#include "kernels/base/device_cuda.h"

namespace shardmat {

CudaVersions cuda_versions() {
  CudaVersions found;
  SHARDMAT_CUDA_CHECK(cudaRuntimeGetVersion(&found.runtime));
  SHARDMAT_CUDA_CHECK(cudaDriverGetVersion(&found.driver));
  return found;
}

bool cuda_has_started() { return cuda::has_started(); }

bool reaches_memory(int from, int to) {
  int yes = 0;
  SHARDMAT_CUDA_CHECK(cudaDeviceCanAccessPeer(&yes, from, to));
  return yes != 0;
}

double most_memory_rate(int ordinal) {
  int kilohertz = 0, bits = 0;
  if (cudaDeviceGetAttribute(&kilohertz, cudaDevAttrMemoryClockRate, ordinal) != cudaSuccess ||
      cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, ordinal) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return 2e3 * kilohertz * (bits / 8.0);  // two transfers a clock
}

}  // namespace shardmat
