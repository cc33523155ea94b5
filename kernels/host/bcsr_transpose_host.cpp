// The transposed product of blocked CSR on host threads. A block is summed over its rows, then added to its columns.
#include "kernels/host/block_rows.h"
#include "kernels/host/dense_columns.h"
#include "kernels/host/scatter_plan.h"

namespace shardmat {
namespace {

struct ScatterBlocks {
  static constexpr std::string_view name = "blocks of bcsr, added to columns";

  template <class Set, class T>
  SHARDMAT_INLINE static void one(const BcsrStorage& a, std::int64_t begin, std::int64_t end, const Scatter<T>& to) {
    several<Set>(a, begin, end, to, 1);
  }
  template <class Set, class T>
  SHARDMAT_INLINE static void several(const BcsrStorage& a, std::int64_t begin, std::int64_t end, const Scatter<T>& to,
                                      std::int64_t right_hand_sides) {
    const BlockRows<T> blocks(a);
    with_block_size(a.block(), [&]<int B>(std::integral_constant<int, B>) SHARDMAT_INLINE_LAMBDA {
      constexpr int kWidest = static_cast<int>(Set::kBytes / sizeof(T));
      for (std::int64_t i = begin; i < end; ++i)
        for_each_group<kWidest>(right_hand_sides,
                                [&]<int W>(std::integral_constant<int, W>, std::int64_t first)
                                    SHARDMAT_INLINE_LAMBDA { block_row<Set, B, W>(blocks, i, to, first); });
    });
  }

 private:
  template <class Set, int B, int W, class T>
  SHARDMAT_INLINE static void block_row(const BlockRows<T>& blocks, std::int64_t i, const Scatter<T>& to,
                                        std::int64_t first) {
    Lanes<T, W> x[B] = {};
    for (int r = 0; r < B; ++r)
      if (i * B + r < blocks.rows) x[r] = to.template of_x<W>(i * B + r, first);
    const std::int64_t last = blocks.offset(i + 1);
    for (std::int64_t k = blocks.offset(i); k < last; ++k) {
      const T* const block = blocks.values + k * (B * B);
      for (std::size_t line = 0; line < B * B * sizeof(T); line += 64)
        __builtin_prefetch(reinterpret_cast<const char*>(block) + 4096 + line);
      const std::int64_t column = std::int64_t{blocks.block_col[k]} * B;
      Lanes<T, W> sums[B] = {};
#pragma GCC unroll 6
      for (int r = 0; r < B; ++r)
#pragma GCC unroll 6
        for (int c = 0; c < B; ++c) add_product<Set>(sums[c], x[r], block[r * B + c]);
      const int columns = static_cast<int>(std::min<std::int64_t>(B, blocks.cols - column));
#pragma GCC unroll 6
      for (int c = 0; c < B; ++c)
        if (c < columns) {
          T* const y = to.y + (column + c) * to.ldy + first;
          store(y, Lanes<T, W>(load<W>(y) + sums[c]));
        }
    }
  }
};

}  // namespace

std::unique_ptr<TransposePlan> make_bcsr_transpose_host(std::shared_ptr<const Storage> storage,
                                                        const TransposeShape& shape) {
  auto a = std::static_pointer_cast<const BcsrStorage>(std::move(storage));
  auto ranges = windowed_ranges(even_block_row_starts(*a), a->nnz, shape.entries, [&](std::int64_t begin, std::int64_t end) {
    const BlockRows<float> blocks(*a);
    ColumnSpan span;
    for (std::int64_t k = blocks.offset(begin); k < blocks.offset(end); ++k) {
      const std::int64_t column = std::int64_t{blocks.block_col[k]} * a->block();
      span.add(column), span.add(std::min<std::int64_t>(column + a->block(), a->cols) - 1);
    }
    return span;
  });
  return std::make_unique<ScatterPlan<BcsrStorage, ScatterBlocks>>(std::move(a), shape, std::move(ranges));
}

}  // namespace shardmat
