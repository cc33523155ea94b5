// Packed rows with many right-hand sides in f64.
#include "kernels/cuda/packed_spmm_kernels.h"

namespace shardmat::packed {

template void multiply_many<double>(const PackedStorage& a, const dense::Rows<double>& v, const SpmmShape& shape,
                                    Stream& on);

}  // namespace shardmat::packed
