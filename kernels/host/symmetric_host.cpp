// Symmetric storage on host threads: each stored block serves two block rows. symmetric_rows.h has the order of summation.
#include "kernels/host/symmetric_rows.h"

#include "kernels/host/csr_rows.h"
#include "kernels/plan.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

/// Lanes of a vector that holds a row of a block.
template <int B>
constexpr int kRowLanes = B <= 2   ? B
                          : B <= 4 ? 4
                                   : 8;

/// Count values, and zeros. Single loads: the compiler joins them, and a load as wide as an earlier store need not wait for
/// it.
template <int B, class T>
SHARDMAT_INLINE Lanes<T, kRowLanes<B>> load_row(const T* from) {
  if constexpr (B == kRowLanes<B>) {
    return load<B>(from);
  } else {
    Lanes<T, kRowLanes<B>> lanes = {};
#pragma GCC unroll 8
    for (int j = 0; j < B; ++j) lanes[j] = from[j];
    return lanes;
  }
}

template <int B, class T>
SHARDMAT_INLINE void store_row(T* to, const Lanes<T, kRowLanes<B>>& lanes) {
  if constexpr (B == kRowLanes<B>) {
    store(to, lanes);
  } else {
#pragma GCC unroll 8
    for (int j = 0; j < B; ++j) to[j] = lanes[j];
  }
}

/// Row r of a block; lanes beyond the row may hold values of the next.
template <int B, class T>
SHARDMAT_INLINE Lanes<T, kRowLanes<B>> block_row(const T* block, int r) {
  return r + 1 < B ? load<kRowLanes<B>>(block + r * B) : load_row<B>(block + r * B);
}

/// A product with one right-hand side, on one range.
template <class Set, class T, int B>
class RangeProduct {
 public:
  /// `above`: where the entries for block row range.first_above begin.
  SHARDMAT_INLINE RangeProduct(const SymmetricStorage& a, const Operands<T>& v, const SymmetricRange& range, T* above)
      : blocks_(a),
        rest_(*a.rest),
        alpha_(v.alpha),
        beta_(v.beta),
        all_of_x_(v.x),
        x_(v.x + a.first_column),
        y_(v.y),
        above_(above),
        buffer_(above - range.first_above * B),
        begin_(range.begin),
        end_(range.end),
        above_rows_((range.begin - range.first_above) * B) {}

  SHARDMAT_INLINE void run() const {
    std::fill(above_, above_ + above_rows_, T(0));
    const std::int64_t whole = std::clamp(std::min(blocks_.rows, blocks_.columns) / B, begin_, end_);
    if (B == 1 && above_rows_ == 0) multiply_rows<true, B != 1>(begin_, whole);
    else multiply_rows<true, true>(begin_, whole);
    multiply_rows<false, true>(whole, end_);
    if (rest_.nnz > 0) add_rest();
  }

 private:
  static constexpr int kLanes = kRowLanes<B>;
  using Row = Lanes<T, kLanes>;

  template <bool kWhole, bool kAbove>
  SHARDMAT_INLINE void multiply_rows(std::int64_t begin, std::int64_t end) const {
    std::int64_t first = blocks_.offset(begin);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t last = blocks_.offset(i + 1);
      multiply<kWhole, kAbove>(i, first, last);
      first = last;
    }
  }

  /// Block row i, which has blocks first … last - 1. kWhole: the matrix has all rows and columns of the block on the
  /// diagonal. kAbove: the range adds to rows above it.
  template <bool kWhole, bool kAbove>
  SHARDMAT_INLINE void multiply(std::int64_t i, std::int64_t first, std::int64_t last) const {
    const bool has_diagonal = last > first && blocks_.block_col[last - 1] == i;
    const int columns = kWhole ? B : static_cast<int>(std::clamp<std::int64_t>(blocks_.columns - i * B, 0, B));
    T x[B] = {}, of_x[B];
    for (int c = 0; c < columns; ++c) x[c] = x_[i * B + c];
    for (int r = 0; r < B; ++r) of_x[r] = alpha_ * x[r];
    prefetch_values(first);
    Row sums[B] = {};
    // Blocks whose mirror image belongs to another range come first. The loop behind them, which does nearly all work, need
    // not ask where to add. It takes one block at a time: rows are short, and where they end is hard to predict.
    const std::int64_t mirrored = last - (has_diagonal ? 1 : 0);
    std::int64_t k = first;
    if constexpr (kAbove)
      for (; k < mirrored && blocks_.block_col[k] < begin_; ++k) add_twice(sums, k, of_x, buffer_);
#pragma GCC unroll 1
    for (; k < mirrored; ++k) add_twice(sums, k, of_x, y_);
    if (has_diagonal) add(sums, k, load_row<B>(x));
#pragma GCC unroll 6
    for (int r = 0; r < B; ++r)
      if (kWhole || i * B + r < blocks_.rows) put_sum(i * B + r, sums[r]);
  }

  /// Asks for values a page ahead, where the processor by itself does not look.
  SHARDMAT_INLINE void prefetch_values(std::int64_t k) const {
    constexpr std::size_t kAhead = 4096, kLine = 64;
    const char* values = reinterpret_cast<const char*>(blocks_.values + k * (B * B)) + kAhead;
    for (std::size_t line = 0; line < (B == 1 ? 2 * kLine : B * B * sizeof(T)); line += kLine)
      __builtin_prefetch(values + line);
  }

  SHARDMAT_INLINE void add(Row (&sums)[B], std::int64_t k, const Row& x) const {
#pragma GCC unroll 6
    for (int r = 0; r < B; ++r) add_row(sums[r], block_row<B>(blocks_.values + k * (B * B), r), x);
  }

  /// sum += a·b. Rows of two values lane by lane: GCC would multiply two rows at once, and not fuse their sums.
  SHARDMAT_INLINE static void add_row(Row& sum, const Row& a, const Row& b) {
    if constexpr (B == 2) {
      T lanes[B] = {sum[0], sum[1]};
      for (int j = 0; j < B; ++j) add_product<Set>(lanes[j], a[j], b[j]);
      sum = load<B>(lanes);
    } else {
      add_product<Set>(sum, a, b);
    }
  }

  /// The block for its own rows, and its mirror image for rows of y.
  SHARDMAT_INLINE void add_twice(Row (&sums)[B], std::int64_t k, const T (&of_x)[B], T* y) const {
    if constexpr (B > 1) prefetch_values(k);
    const T* block = blocks_.values + k * (B * B);
    const std::int64_t column = blocks_.block_col[k];
    const Row x = load_row<B>(x_ + column * B);
    T* above = y + column * B;
    Row to = load_row<B>(above);
#pragma GCC unroll 6
    for (int r = 0; r < B; ++r) {
      const Row row = block_row<B>(block, r);
      add_row(sums[r], row, x);
      add_row(to, row, Row{} + of_x[r]);
    }
    store_row<B>(above, to);
  }

  SHARDMAT_INLINE void put_sum(std::int64_t row, const Row& of_columns) const {
    T sum[kLanes];
    store(sum, of_columns);
    T total = sum[0];
    for (int c = 1; c < B; ++c) total += sum[c];
    put<Set>(y_[row], alpha_ * total, beta_);
  }

  SHARDMAT_INLINE void add_rest() const {
    const std::int32_t* col_idx = rest_.col_idx.template as<std::int32_t>();
    const T* values = rest_.values.template as<T>();
    for (std::int64_t row = begin_ * B; row < std::min(blocks_.rows, end_ * B); ++row) {
      const std::int64_t first = offset_of_row(rest_, row), count = offset_of_row(rest_, row + 1) - first;
      if (count > 0) put<Set>(y_[row], alpha_ * sum_of_row<Set>(values + first, col_idx + first, count, all_of_x_), T(1));
    }
  }

  // Copies, which the compiler keeps in registers: y could be the memory of anything else.
  LowerBlocks<T> blocks_;
  const CsrStorage& rest_;
  T alpha_, beta_;
  const T *all_of_x_, *x_;   ///< x_: from the diagonal's first column on
  T *y_, *above_, *buffer_;  ///< buffer_: where block row 0 would be if the buffer held all rows
  std::int64_t begin_, end_, above_rows_;
};

class SymmetricHostPlan final : public Plan {
 public:
  explicit SymmetricHostPlan(std::shared_ptr<SymmetricStorage> a)
      : Plan(a),
        a_(std::move(a)),
        ranges_(*a_),
        buffer_(Device{}, static_cast<std::size_t>(ranges_.buffer_rows()) * size_of(a_->type)) {}

  void multiply(double alpha, const void* x, double beta, void* y, Stream&) const override {
    dispatch(a_->type, [&]<class T>(TypeTag<T>) {
      const Operands<T> v{static_cast<T>(alpha), static_cast<const T*>(x), static_cast<T>(beta), static_cast<T*>(y)};
      parallel_tasks(ranges_.count(), [&](std::int64_t r) { multiply_range(v, ranges_[r]); });
      if (ranges_.buffer_rows() > 0) parallel_tasks(ranges_.count(), [&](std::int64_t r) { add_buffers(v.y, r); });
    });
  }

  std::int64_t extra_bytes() const override { return static_cast<std::int64_t>(buffer_.bytes()); }

 private:
  template <class T>
  void multiply_range(const Operands<T>& v, const SymmetricRange& range) const {
    with_block_size<1>(a_->block(), [&]<int B>(std::integral_constant<int, B>) {
      run_compiled_for(isa_, [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA {
        RangeProduct<Set, T, B>(*a_, v, range, buffer_.as<T>() + range.buffer).run();
      });
    });
  }

  template <class T>
  void add_buffers(T* y, std::int64_t r) const {
    for (std::int64_t s = r + 1; s < ranges_.count(); ++s) {
      const T* above = buffer_.as<T>() + ranges_[s].buffer;
      const auto [begin, end] = ranges_.shared_rows(r, s);
      for (std::int64_t row = begin; row < end; ++row) y[row] += above[row - ranges_[s].first_above * a_->block()];
    }
  }

  std::shared_ptr<SymmetricStorage> a_;
  SymmetricRanges ranges_;
  Buffer buffer_;  ///< what ranges add to rows above them
  Isa isa_ = instruction_set();
};

}  // namespace

std::unique_ptr<Plan> make_symmetric_host(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  return std::make_unique<SymmetricHostPlan>(std::static_pointer_cast<SymmetricStorage>(std::move(storage)));
}

}  // namespace shardmat
