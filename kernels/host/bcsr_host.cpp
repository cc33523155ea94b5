// Blocked CSR on host threads, a block row at a time; the block size is known at compile time.
#include <algorithm>

#include "kernels/base/parallel.h"
#include "kernels/formats/bcsr.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

template <class T, class Offset, int B>
void multiply_block_row(const BcsrStorage& a, const Operands<T>& p, std::int64_t i) {
  const Offset* block_ptr = a.block_ptr.as<Offset>();
  const std::int32_t* block_col = a.block_col.as<std::int32_t>();
  T sum[B] = {};
  for (Offset k = block_ptr[i]; k < block_ptr[i + 1]; ++k) {
    const std::int64_t column = std::int64_t{block_col[k]} * B;
    const T* block = a.values.as<T>() + std::int64_t{k} * (B * B);
    const int inside = static_cast<int>(std::min<std::int64_t>(B, a.cols - column));
    for (int r = 0; r < B; ++r)
      for (int c = 0; c < inside; ++c) sum[r] += block[r * B + c] * p.x[column + c];
  }
  for (std::int64_t row = i * B; row < std::min((i + 1) * B, a.rows); ++row) p.put(row, sum[row - i * B]);
}

template <class T, class Offset>
auto instance(int block) {
  return block == 2   ? multiply_block_row<T, Offset, 2>
         : block == 3 ? multiply_block_row<T, Offset, 3>
         : block == 4 ? multiply_block_row<T, Offset, 4>
                      : multiply_block_row<T, Offset, 6>;
}

}  // namespace

std::unique_ptr<Plan> make_bcsr_host(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  return typed_plan<BcsrStorage>(std::move(storage), []<class T>(const BcsrStorage& a, const Operands<T>& p, Stream&) {
    const auto multiply = a.wide_offsets ? instance<T, std::int64_t>(a.block()) : instance<T, std::int32_t>(a.block());
    parallel_ranges(a.block_rows, 256, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) multiply(a, p, i);
    });
  });
}

}  // namespace shardmat
