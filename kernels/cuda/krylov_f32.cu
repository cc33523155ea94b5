// Steps of Krylov methods on vectors in f32.
#include "kernels/cuda/krylov_kernels.h"

namespace shardmat::krylov {

SHARDMAT_STEPS_OF_TYPE(SHARDMAT_MAKE, float)

}  // namespace shardmat::krylov
