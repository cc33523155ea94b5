// Packed rows with many right-hand sides in f32.
#include "kernels/cuda/packed_spmm_kernels.h"

namespace shardmat::packed {

template void multiply_many<float>(const PackedStorage& a, const dense::Rows<float>& v, const SpmmShape& shape, Stream& on);

}  // namespace shardmat::packed
