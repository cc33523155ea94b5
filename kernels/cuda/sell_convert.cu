// SELL out of CSR on the device: a thread fills the places of one slot, so that a warp writes whole cache lines.
#include "kernels/cuda/launch.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/sell.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

template <class T, class CsrOffset, class SellOffset>
__global__ void fill_slots(std::int64_t rows, std::int64_t slots, std::int64_t slice, std::int64_t sigma,
                           const CsrOffset* __restrict__ row_ptr, const std::int32_t* __restrict__ csr_col_idx,
                           const T* __restrict__ csr_values, const SellOffset* __restrict__ slice_ptr,
                           const std::int32_t* __restrict__ permutation, std::int32_t* __restrict__ col_idx,
                           T* __restrict__ values) {
  const std::int64_t slot = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (slot >= slots) return;
  const std::int64_t s = slot / slice, first = slice_ptr[s], width = (slice_ptr[s + 1] - first) / slice;
  const std::int64_t row = sigma == 1 || slot >= rows ? slot : slot - slot % sigma + permutation[slot];
  const std::int64_t begin = row < rows ? row_ptr[row] : 0, length = row < rows ? row_ptr[row + 1] - begin : 0;
  for (std::int64_t j = 0; j < width; ++j) {
    const std::int64_t to = first + j * slice + slot % slice;
    col_idx[to] = j < length ? csr_col_idx[begin + j] : -1;
    values[to] = j < length ? csr_values[begin + j] : T(0);
  }
}

}  // namespace

void fill_sell_on_device(SellStorage& sell, const CsrStorage& csr, Stream& stream) {
  constexpr int kBlock = 128;
  const std::int64_t slots = sell.pattern->slices() * sell.pattern->slice;
  dispatch(sell.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    dispatch_offset(csr.wide_offsets, [&](auto csr_tag) {
      dispatch_offset(sell.wide_offsets, [&](auto sell_tag) {
        using CsrOffset = typename decltype(csr_tag)::type;
        using SellOffset = typename decltype(sell_tag)::type;
        cuda::launch(fill_slots<T, CsrOffset, SellOffset>, slots, kBlock, stream, sell.rows, slots, sell.pattern->slice,
                     sell.pattern->sigma, csr.row_ptr.as<CsrOffset>(), csr.col_idx.as<std::int32_t>(), csr.values.as<T>(),
                     sell.slice_ptr.as<SellOffset>(), sell.permutation.as<std::int32_t>(), sell.col_idx.as<std::int32_t>(),
                     sell.values.as<T>());
      });
    });
  });
  stream.synchronize();
}

}  // namespace shardmat
