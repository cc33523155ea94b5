// Packed rows in blocks of three rows and more with many right-hand sides in f32.
#include "kernels/cuda/packed_spmm_kernels.h"

namespace shardmat::packed {

#define SHARDMAT_MAKE(B, L) SHARDMAT_MAKE_FOR(float, B, L)
SHARDMAT_SHAPES_OF_LARGE_BLOCKS(SHARDMAT_MAKE)

}  // namespace shardmat::packed
