// A build without CUDA.
#include "kernels/base/error.h"
#include "kernels/krylov/cg_iteration.h"

namespace shardmat::krylov {

int cg_blocks(Device) { return 0; }

template <class T, Scaling kScaling>
void run_cg_iteration(const CgIteration<T, kScaling>&, Stream&) {
  throw Error(ErrorKind::internal, "this build has no GPU kernels");
}

#define SHARDMAT_MAKE(T, kScaling) template void run_cg_iteration(const CgIteration<T, kScaling>&, Stream&);
SHARDMAT_CG_ITERATIONS(SHARDMAT_MAKE)

}  // namespace shardmat::krylov
