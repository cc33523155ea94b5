// Symmetric storage with many right-hand sides on host threads. Each column is summed as symmetric_host sums a single one.
#include <algorithm>

#include "kernels/host/csr_columns.h"
#include "kernels/host/csr_rows.h"
#include "kernels/host/dense_columns.h"
#include "kernels/host/symmetric_rows.h"

namespace shardmat {
namespace {

/// Rows of a block row whose sums fit registers together: a divisor of B.
template <class Set, int B, int kPacks>
constexpr int rows_at_once() {
  int rows = B;
  while (rows > 1 && (B % rows != 0 || rows * B * kPacks > Set::kRegisters - 6)) --rows;
  return rows;
}

/// Rows of Y whose columns lie one after another. The code has no branch on the order of Y: it would come between a product
/// and the sum that it belongs to, and GCC fuses the two only where no branch is between them.
template <class T>
struct RowsOfY {
  T* data;
  std::int64_t stride;  ///< from a row to the next

  /// Columns first … first + W - 1 of row i.
  template <int W>
  SHARDMAT_INLINE Lanes<T, W> get(std::int64_t i, std::int64_t first) const {
    return load<W>(data + i * stride + first);
  }
  template <class Pack>
  SHARDMAT_INLINE void set(std::int64_t i, std::int64_t first, const Pack& lanes) const {
    store(data + i * stride + first, lanes);
  }
};

/// Columns of the widest group.
template <class Set, class T>
constexpr int kWidest = static_cast<int>(Set::kBytes / sizeof(T));

/// A product with many right-hand sides, on one range, without the entries outside the triangle.
template <class Set, class T, int B>
class RangeProduct {
 public:
  /// `above`: where the entries for block row range.first_above begin, row-major.
  SHARDMAT_INLINE RangeProduct(const SymmetricStorage& a, const ColumnsOfX<T>& x, const ColumnsOfY<T>& y,
                               const SymmetricRange& range, const RowsOfY<T>& above)
      : a_(a), blocks_(a), x_(x), y_(y), own_{y.data, y.row}, range_(range), above_(above) {}

  SHARDMAT_INLINE void run(std::int64_t columns) const {
    std::fill(above_.data, above_.data + (range_.begin - range_.first_above) * B * columns, T(0));
    for (std::int64_t i = range_.begin; i < range_.end; ++i) {
      for_each_group<kWidest<Set, T>>(columns,
                                      [&]<int W>(std::integral_constant<int, W>, std::int64_t first) SHARDMAT_INLINE_LAMBDA {
                                        constexpr int kRows = rows_at_once<Set, B, W / kLanesOfGroup<Set, T, W>>();
                                        for (int row = 0; row < B; row += kRows) multiply<W, kRows>(i, row, first);
                                      });
    }
  }

 private:
  /// Columns first … first + W - 1 of rows row … row + R - 1 of block row i, and their mirror image.
  template <int W, int R>
  SHARDMAT_INLINE void multiply(std::int64_t i, int row, std::int64_t first) const {
    using Pack = Lanes<T, W>;
    const std::int64_t begin = blocks_.offset(i), end = blocks_.offset(i + 1), top = i * B + row;
    const int rows = static_cast<int>(std::clamp<std::int64_t>(blocks_.rows - top, 0, R));
    const bool has_diagonal = end > begin && blocks_.block_col[end - 1] == i;
    Pack of_x[R] = {}, sums[R][B] = {};
    const int columns = static_cast<int>(std::clamp<std::int64_t>(blocks_.columns - top, 0, R));
    for (int r = 0; r < columns; ++r) of_x[r] = y_.alpha * column_of_x<W>(top + r, first);
    const auto add_twice = [&](std::int64_t k) SHARDMAT_INLINE_LAMBDA {
      const T* block = blocks_.values + k * (B * B) + row * B;
      const std::int64_t column = std::int64_t{blocks_.block_col[k]};
      const bool is_above = column < range_.begin;
      const RowsOfY<T>& y = is_above ? above_ : own_;
      const std::int64_t y_row = (column - (is_above ? range_.first_above : 0)) * B;
#pragma GCC unroll 6
      for (int c = 0; c < B; ++c) {
        const Pack x = column_of_x<W>(column * B + c, first);
        Pack above = y.template get<W>(y_row + c, first);
#pragma GCC unroll 6
        for (int r = 0; r < R; ++r) {
          add_product<Set>(sums[r][c], block[r * B + c], x);
          add_product<Set>(above, block[r * B + c], of_x[r]);
        }
        y.set(y_row + c, first, above);
      }
    };
    const auto add = [&](std::int64_t k) SHARDMAT_INLINE_LAMBDA {
      const T* block = blocks_.values + k * (B * B) + row * B;
#pragma GCC unroll 6
      for (int c = 0; c < B; ++c) {
        if (i * B + c >= blocks_.columns) break;
        const Pack x = column_of_x<W>(i * B + c, first);
#pragma GCC unroll 6
        for (int r = 0; r < R; ++r) add_product<Set>(sums[r][c], block[r * B + c], x);
      }
    };
    const std::int64_t mirrored = end - (has_diagonal ? 1 : 0);
    for (std::int64_t k = begin; k < mirrored; ++k) add_twice(k);
    if (has_diagonal) add(mirrored);
    for (int r = 0; r < rows; ++r) {
      Pack total = sums[r][0];
#pragma GCC unroll 6
      for (int c = 1; c < B; ++c) total += sums[r][c];
      y_.template put<Set>(top + r, first, total);
    }
  }

  template <int W>
  SHARDMAT_INLINE Lanes<T, W> column_of_x(std::int64_t row, std::int64_t first) const {
    return x_.template get<T, W>(a_.first_column + row, first);
  }

  const SymmetricStorage& a_;
  LowerBlocks<T> blocks_;
  const ColumnsOfX<T>& x_;
  const ColumnsOfY<T>& y_;
  RowsOfY<T> own_;
  const SymmetricRange& range_;
  const RowsOfY<T>& above_;
};

/// Adds the entries of a range's rows outside the triangle.
template <class Set, class T>
SHARDMAT_INLINE void add_rest(const SymmetricStorage& a, const SymmetricRange& range, std::int64_t columns,
                              const ColumnsOfX<T>& x, ColumnsOfY<T> y) {
  const CsrStorage& rest = *a.rest;
  y.beta = 1;
  const std::int64_t block = a.block(), end = std::min(a.rows, range.end * block);
  for (std::int64_t row = range.begin * block; row < end; ++row) {
    const std::int64_t begin = offset_of_row(rest, row), count = offset_of_row(rest, row + 1) - begin;
    if (count == 0) continue;
    for_each_column_group<Set, T, kWidest<Set, T>>(columns, false, [&](const auto& group) SHARDMAT_INLINE_LAMBDA {
      multiply_row_group<Set>(rest.values.as<T>() + begin, rest.col_idx.as<std::int32_t>() + begin, count, x, y, row, group);
    });
  }
}

class SymmetricSpmmHostPlan final : public SpmmPlan {
 public:
  SymmetricSpmmHostPlan(std::shared_ptr<SymmetricStorage> a, const RightHandSides& rhs)
      : SpmmPlan(a, rhs),
        a_(std::move(a)),
        ranges_(*a_),
        buffer_(Device{}, static_cast<std::size_t>(ranges_.buffer_rows() * rhs.count) * size_of(a_->type)) {}

  std::int64_t extra_bytes() const override { return static_cast<std::int64_t>(buffer_.bytes()); }

 private:
  std::int64_t count() const { return right_hand_sides().count; }

  void run(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy, Stream&) const override {
    dispatch(a_->type, [&]<class T>(TypeTag<T>) {
      const ColumnsOfX<T> of_x{static_cast<const T*>(x), ldx};
      const ColumnsOfY<T> of_y(alpha, beta, y, ldy);
      parallel_tasks(ranges_.count(), [&](std::int64_t r) { multiply_range(of_x, of_y, ranges_[r]); });
      if (ranges_.buffer_rows() > 0) parallel_tasks(ranges_.count(), [&](std::int64_t r) { add_buffers(of_y, r); });
    });
  }

  /// What a range adds to rows above it.
  template <class T>
  RowsOfY<T> buffer_of(const SymmetricRange& range) const {
    return {buffer_.as<T>() + range.buffer * count(), count()};
  }

  template <class T>
  void multiply_range(const ColumnsOfX<T>& x, const ColumnsOfY<T>& y, const SymmetricRange& range) const {
    const RowsOfY<T> above = buffer_of<T>(range);
    // A function for each block size: one for all takes the compiler ten times as long.
    with_block_size<1>(a_->block(), [&]<int B>(std::integral_constant<int, B>) {
      run_compiled_for(isa_, [&]<class Set>(Set)
                                 SHARDMAT_INLINE_LAMBDA { RangeProduct<Set, T, B>(*a_, x, y, range, above).run(count()); });
    });
    if (a_->rest->nnz > 0)
      run_compiled_for(isa_, [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA { add_rest<Set>(*a_, range, count(), x, y); });
  }

  template <class T>
  void add_buffers(const ColumnsOfY<T>& y, std::int64_t r) const {
    for (std::int64_t s = r + 1; s < ranges_.count(); ++s) {
      const T* above = buffer_of<T>(ranges_[s]).data;
      const auto [begin, end] = ranges_.shared_rows(r, s);
      for (std::int64_t row = begin; row < end; ++row) {
        const T* from = above + (row - ranges_[s].first_above * a_->block()) * count();
        for (std::int64_t j = 0; j < count(); ++j) y.data[row * y.row + j] += from[j];
      }
    }
  }

  std::shared_ptr<SymmetricStorage> a_;
  SymmetricRanges ranges_;
  Buffer buffer_;  ///< what ranges add to rows above them
  Isa isa_ = instruction_set();
};

}  // namespace

std::unique_ptr<SpmmPlan> make_symmetric_spmm_host(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                                   const Policy&, Stream&) {
  return std::make_unique<SymmetricSpmmHostPlan>(std::static_pointer_cast<SymmetricStorage>(std::move(storage)), rhs);
}

}  // namespace shardmat
