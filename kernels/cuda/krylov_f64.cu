// Steps of Krylov methods on vectors in f64 and on the scalars of columns.
#include "kernels/cuda/krylov_kernels.h"

namespace shardmat::krylov {

SHARDMAT_STEPS_OF_TYPE(SHARDMAT_MAKE, double)
SHARDMAT_SCALAR_STEPS(SHARDMAT_MAKE)

}  // namespace shardmat::krylov
