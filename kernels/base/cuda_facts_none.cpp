#include "kernels/base/cuda_facts.h"
#include "kernels/base/error.h"

namespace shardmat {

CudaVersions cuda_versions() { return {}; }
bool cuda_has_started() { return false; }
bool reaches_memory(int, int) { throw Error(ErrorKind::internal, "a build without CUDA has no devices"); }
double most_memory_rate(int) { return 0; }

}  // namespace shardmat
