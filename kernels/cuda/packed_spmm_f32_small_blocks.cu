// Packed rows in blocks of one or two rows with many right-hand sides in f32.
#include "kernels/cuda/packed_spmm_kernels.h"

namespace shardmat::packed {

#define SHARDMAT_MAKE(B, L) SHARDMAT_MAKE_FOR(float, B, L)
SHARDMAT_SHAPES_OF_SMALL_BLOCKS(SHARDMAT_MAKE)

}  // namespace shardmat::packed
