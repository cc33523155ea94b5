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
      : rest_(*a.rest), blocks_(a), v_(v), x_(v.x + a.first_column), range_(range), above_(above) {}

  SHARDMAT_INLINE void run() const {
    std::fill(above_, above_ + (range_.begin - range_.first_above) * B, T(0));
    for (std::int64_t i = range_.begin; i < range_.end; ++i) multiply(i);
  }

 private:
  static constexpr int kLanes = kRowLanes<B>, kChains = kSymmetricChains<B>;
  using Row = Lanes<T, kLanes>;
  using Sums = Row[kChains][B];

  SHARDMAT_INLINE void multiply(std::int64_t i) const {
    const std::int64_t first = blocks_.offset(i), last = blocks_.offset(i + 1);
    const bool has_diagonal = last > first && blocks_.block_col[last - 1] == i;
    const int rows = static_cast<int>(std::min<std::int64_t>(B, blocks_.rows - i * B));
    const int columns = static_cast<int>(std::clamp<std::int64_t>(blocks_.columns - i * B, 0, B));
    T x[B] = {}, of_x[B];
    for (int c = 0; c < columns; ++c) x[c] = x_[i * B + c];
    for (int r = 0; r < B; ++r) of_x[r] = v_.alpha * x[r];
    Sums sums = {};
    std::int64_t k = first;
    const std::int64_t mirrored = last - (has_diagonal ? 1 : 0);
    // Blocks whose mirror image belongs to another range come first. The loop behind them, which does nearly all work, need
    // not ask where to add.
    for (; k < mirrored && (blocks_.block_col[k] < range_.begin || (k - first) % kChains != 0); ++k)
      with_chain(sums, static_cast<int>((k - first) % kChains), [&](auto& to) SHARDMAT_INLINE_LAMBDA {
        const bool own = blocks_.block_col[k] >= range_.begin;
        add_twice(to, k, of_x, own ? v_.y : above_ - range_.first_above * B);
      });
    for (; k + kChains <= mirrored; k += kChains)
#pragma GCC unroll 4
      for (int chain = 0; chain < kChains; ++chain) add_twice(sums[chain], k + chain, of_x, v_.y);
    int chain = static_cast<int>((k - first) % kChains);
    for (; k < mirrored; ++k, ++chain)
      with_chain(sums, chain, [&](auto& to) SHARDMAT_INLINE_LAMBDA { add_twice(to, k, of_x, v_.y); });
    if (has_diagonal) with_chain(sums, chain, [&](auto& to) SHARDMAT_INLINE_LAMBDA { add(to, k, load_row<B>(x)); });
    put_sums(i, rows, sums);
    put_rest(i, rows);
  }

  /// `chain` is known only at run time, and the sums stay in registers.
  template <class Body>
  SHARDMAT_INLINE static void with_chain(Sums& sums, int chain, const Body& body) {
    if constexpr (kChains == 1) return body(sums[0]);
    else if constexpr (kChains == 2) return chain == 0 ? body(sums[0]) : body(sums[1]);
    else return chain == 0 ? body(sums[0]) : chain == 1 ? body(sums[1]) : chain == 2 ? body(sums[2]) : body(sums[3]);
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
    const T* block = blocks_.values + k * (B * B);
    if constexpr (B > 2)  // small blocks: a prefetch a block costs more than it saves
      for (std::size_t line = 0; line < B * B * sizeof(T); line += 64)
        __builtin_prefetch(reinterpret_cast<const char*>(block) + 4096 + line);
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

  SHARDMAT_INLINE void put_sums(std::int64_t i, int rows, const Sums& sums) const {
    for (int r = 0; r < rows; ++r) {
      Row of_chains[kChains];
      for (int chain = 0; chain < kChains; ++chain) of_chains[chain] = sums[chain][r];
      const Row joined = join_chains(of_chains);
      T sum[kLanes];
      std::memcpy(sum, &joined, sizeof sum);
      T total = sum[0];
      for (int c = 1; c < B; ++c) total += sum[c];
      put<Set>(v_.y[i * B + r], v_.alpha * total, v_.beta);
    }
  }

  SHARDMAT_INLINE void put_rest(std::int64_t i, int rows) const {
    if (rest_.nnz == 0) return;
    const std::int32_t* col_idx = rest_.col_idx.template as<std::int32_t>();
    const T* values = rest_.values.template as<T>();
    for (std::int64_t row = i * B; row < i * B + rows; ++row) {
      const std::int64_t first = offset_of_row(rest_, row), count = offset_of_row(rest_, row + 1) - first;
      if (count > 0) put<Set>(v_.y[row], v_.alpha * sum_of_row<Set>(values + first, col_idx + first, count, v_.x), T(1));
    }
  }

  const CsrStorage& rest_;
  LowerBlocks<T> blocks_;
  const Operands<T>& v_;
  const T* x_;
  const SymmetricRange& range_;
  T* above_;
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
    run_compiled_for(isa_, [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA {
      with_symmetric_block(a_->block(), [&]<int B>(std::integral_constant<int, B>) SHARDMAT_INLINE_LAMBDA {
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
