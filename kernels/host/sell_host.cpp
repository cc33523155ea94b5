// SELL on host threads: the rows of a slice advance together, column by column, as they lie in memory.
#include <algorithm>

#include "kernels/base/parallel.h"
#include "kernels/formats/sell.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

template <class T, class Offset>
void multiply_slice(const SellStorage& a, const Operands<T>& p, std::int64_t s) {
  const Offset* slice_ptr = a.slice_ptr.as<Offset>();
  const std::int32_t* col_idx = a.col_idx.as<std::int32_t>();
  const T* values = a.values.as<T>();
  const std::int64_t slice = a.pattern->slice, sigma = a.pattern->sigma;
  T sum[1024];
  std::fill_n(sum, slice, T(0));
  for (std::int64_t k = slice_ptr[s]; k < slice_ptr[s + 1]; k += slice)
    for (std::int64_t lane = 0; lane < slice; ++lane)
      if (col_idx[k + lane] >= 0) sum[lane] += values[k + lane] * p.x[col_idx[k + lane]];
  for (std::int64_t slot = s * slice; slot < std::min((s + 1) * slice, a.rows); ++slot)
    p.put(sigma == 1 ? slot : slot / sigma * sigma + a.permutation.as<std::int32_t>()[slot], sum[slot - s * slice]);
}

}  // namespace

std::unique_ptr<Plan> make_sell_host(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  return typed_plan<SellStorage>(std::move(storage), []<class T>(const SellStorage& a, const Operands<T>& p, Stream&) {
    const auto multiply = a.wide_offsets ? multiply_slice<T, std::int64_t> : multiply_slice<T, std::int32_t>;
    parallel_ranges(a.pattern->slices(), std::max<std::int64_t>(1, 1024 / a.pattern->slice),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t s = begin; s < end; ++s) multiply(a, p, s);
                    });
  });
}

}  // namespace shardmat
