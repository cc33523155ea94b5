// SELL, one thread a slot: with slices of 32 rows or more a warp reads columns and values in whole cache lines. As in
// csr_vector, each thread issues the loads of several nonzeros before it gathers from x.
#include "kernels/cuda/launch.h"
#include "kernels/formats/sell.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

constexpr int kUnroll = 8;

template <class T, class Offset>
__global__ void sell(std::int64_t rows, int log_slice, const Offset* __restrict__ slice_ptr, std::int64_t sigma,
                     const std::int32_t* __restrict__ permutation, const std::int32_t* __restrict__ col_idx,
                     const T* __restrict__ values, T alpha, const T* __restrict__ x, T beta, T* __restrict__ y) {
  const std::int64_t slot = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (slot >= rows) return;
  const std::int64_t s = slot >> log_slice;
  const std::int64_t first = slice_ptr[s];
  const std::int64_t width = (static_cast<std::int64_t>(slice_ptr[s + 1]) - first) >> log_slice;
  const std::int64_t lane = slot - (s << log_slice);
  col_idx += first + lane;
  values += first + lane;
  T sum = 0;
  for (std::int64_t j = 0; j < width; j += kUnroll) {
    std::int32_t column[kUnroll];
    T value[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const bool inside = j + u < width;
      column[u] = inside ? __ldg(col_idx + ((j + u) << log_slice)) : -1;
      value[u] = inside ? __ldg(values + ((j + u) << log_slice)) : T(0);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (column[u] >= 0) sum += value[u] * __ldg(x + column[u]);
  }
  const std::int64_t row = sigma == 1 ? slot : slot - slot % sigma + permutation[slot];
  y[row] = beta == T(0) ? alpha * sum : alpha * sum + beta * y[row];
}

}  // namespace

std::unique_ptr<Plan> make_sell(std::shared_ptr<Storage> storage, const Policy& policy, Stream&) {
  const int block_size = cuda::block_size_of(policy, "sell");
  return typed_plan<SellStorage>(
      std::move(storage), [block_size]<class T>(const SellStorage& a, const Operands<T>& p, Stream& stream) {
        int log_slice = 0;
        while ((std::int64_t{1} << log_slice) < a.pattern->slice) ++log_slice;
        dispatch_offset(a.wide_offsets, [&](auto offset) {
          using Offset = typename decltype(offset)::type;
          cuda::launch(sell<T, Offset>, a.rows, block_size, stream, a.rows, log_slice, a.slice_ptr.as<Offset>(),
                       a.pattern->sigma, a.permutation.as<std::int32_t>(), a.col_idx.as<std::int32_t>(), a.values.as<T>(),
                       p.alpha, p.x, p.beta, p.y);
        });
      });
}

}  // namespace shardmat
