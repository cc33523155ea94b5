#include "runtime/solvers/incomplete/factors.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/host/lanes.h"
#include "runtime/solvers/incomplete/pivot.h"

namespace shardmat::incomplete {
namespace {

constexpr double kFirstShift = 1e-3, kMostShift = 10;
constexpr std::int64_t kRowsAtOnce = 256;  ///< that a solve fills and takes: they stay in the first cache
constexpr std::int64_t kPadding = 8;       ///< values that a load may read behind the last one

/// Rows whose entries a solve reads one after the other.
template <class V>
struct RowsInOrder {
  HostVector<std::int64_t> start{0};
  HostVector<std::int32_t> column;
  HostVector<V> value;  ///< column-major blocks, then some padding
};

/// Rows × columns of x, or of several right-hand sides, that blocks of kS unknowns read at once: a power of two.
constexpr int lanes_of(int s) { return s == 1 ? 1 : s == 2 ? 2 : s <= 4 ? 4 : 8; }

template <class V, int kS>
class FactorsOf final : public Factors {
  static constexpr std::int64_t kEntries = kS * kS;
  static constexpr int kLanes = lanes_of(kS);
  using Pack = Lanes<double, kLanes>;

 public:
  FactorsOf(Order order, Pattern pattern, bool symmetric)
      : Factors(std::move(order), std::move(pattern)), symmetric_(symmetric) {}

  void factorise(const SquareRows& a) override {
    require_host_memory(8 * pattern_.blocks() * kEntries, "the values of incomplete factors");
    HostVector<double> value(at(pattern_.blocks() * kEntries)), inverse(at(order_.count() * kEntries));
    for (shift_ = 0; shift_ <= kMostShift; shift_ = shift_ == 0 ? kFirstShift : 2 * shift_) {
      const std::int64_t bad = eliminate(a, value, inverse);
      if (bad < 0) return pack(value, inverse);
      if (shift_ > 0 && shift_ * 2 > kMostShift)
        throw Error(
            ErrorKind::input,
            fmt::format(
                "row {} of this rank has no pivot for ilu or ic, even with {} times the sum of its magnitudes added to "
                "its diagonal: is it a row of zeros in the columns of this rank, or are values not finite?",
                order_.row[at(bad)] * std::int64_t{kS}, shift_),
            "matrix");
    }
  }

  void solve(double* x, int columns, const Rows& fill, const Rows& take) const override {
    const std::int64_t n = order_.count();
    order_.each_group([&](std::size_t g) {
      const std::int64_t end = order_.group[g + 1];
      for (std::int64_t i = order_.group[g]; i < end; i += kRowsAtOnce) {
        const std::int64_t stop = std::min(end, i + kRowsAtOnce);
        fill(i, stop);
        run_compiled_for(best_isa(), [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA {
          if (columns == 1) forward(x, i, stop);
          else forward(x, columns, i, stop);
        });
      }
    });
    order_.each_group_backward([&](std::size_t g) {
      const std::int64_t end = order_.group[g];
      for (std::int64_t i = order_.group[g + 1]; i > end; i -= kRowsAtOnce) {
        const std::int64_t stop = std::max(end, i - kRowsAtOnce);
        run_compiled_for(best_isa(), [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA {
          if (columns == 1) backward(x, n - i, n - stop);
          else backward(x, columns, n - i, n - stop);
        });
        take(stop, i);
      }
    });
  }

  triangles::HostFactors arrays() const override {
    const auto of = [&](const RowsInOrder<V>& m, bool reversed) {
      return triangles::TriangleRows{order_.count(), m.start.data(), m.column.data(), m.value.data(), reversed};
    };
    return {std::is_same_v<V, float> ? ValueType::f32 : ValueType::f64, kS, of(lower_, false), of(upper_, true),
            inverse_.data()};
  }
  void discard() override { lower_ = {}, upper_ = {}, inverse_ = {}; }

  std::int64_t bytes() const override {
    const std::int64_t entries = std::ssize(lower_.value) + std::ssize(upper_.value) + std::ssize(inverse_);
    return entries * std::int64_t{sizeof(V)} + 8 * std::ssize(lower_.column) + 28 * order_.count();
  }

 private:
  /// The first row without a pivot, or -1.
  std::int64_t eliminate(const SquareRows& a, HostVector<double>& value, HostVector<double>& inverse) {
    std::atomic<std::int64_t> bad = -1;
    order_.each_group([&](std::size_t g) {
      if (bad >= 0) return;
      const std::int64_t found = eliminate_group(a, g, value, inverse);
      if (found >= 0) bad = found;
    });
    return bad;
  }

  std::int64_t eliminate_group(const SquareRows& a, std::size_t g, HostVector<double>& values, HostVector<double>& inverse) {
    HostVector<std::int64_t> place(at(order_.count()), -1);  // of the columns of a row
    std::int64_t bad = -1;
    run_compiled_for(best_isa(), [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA {
      const Pattern& p = pattern_;
      double* const value = values.data();
      for (std::int64_t i = order_.group[g]; i < order_.group[g + 1] && bad < 0; ++i) {
        const std::int64_t begin = p.start[at(i)], end = p.start[at(i + 1)], diagonal = p.diagonal[at(i)];
        std::fill(value + begin * kEntries, value + end * kEntries, 0.0);
        for (std::int64_t k = begin; k < end; ++k) place[at(p.column[at(k)])] = k;
        const std::int64_t row = order_.row[at(i)];
        double sums[kS] = {};
        for (std::int64_t k = a.start[at(row)]; k < a.start[at(row + 1)]; ++k) {
          const double* const from = a.block(k);
          double* const to = value + place[at(order_.position[at(a.column[at(k)])])] * kEntries;
          for (int r = 0; r < kS; ++r)
            for (int c = 0; c < kS; ++c) to[r * kS + c] = from[r * kS + c], sums[r] += std::abs(from[r * kS + c]);
        }
        double* const pivot = value + diagonal * kEntries;
        for (int u = 0; u < kS; ++u) {
          double& entry = pivot[u * kS + u];
          entry += (symmetric_ || entry >= 0 ? shift_ : -shift_) * sums[u];
        }
        for (std::int64_t k = begin; k < diagonal; ++k) {
          const std::int64_t j = p.column[at(k)];
          double* const block = value + k * kEntries;
          double product[kEntries];
          multiply_blocks(block, inverse.data() + j * kEntries, product, kS);
          std::copy_n(product, kEntries, block);
          for (std::int64_t e = p.diagonal[at(j)] + 1; e < p.start[at(j + 1)]; ++e)
            if (const std::int64_t to = place[at(p.column[at(e)])]; to >= 0)
              subtract_product(block, value + e * kEntries, value + to * kEntries, kS);
        }
        const double least = kLeastPivot * *std::max_element(sums, sums + kS);
        double* const inverted = inverse.data() + i * kEntries;
        if (!(symmetric_ ? invert_definite(pivot, inverted, kS, least) : invert_pivot(pivot, inverted, kS, least))) bad = i;
        for (std::int64_t k = begin; k < end; ++k) place[at(p.column[at(k)])] = -1;
      }
    });
    return bad;
  }

  /// `turned`: the block is that of the transpose.
  static void put_block(const double* block, bool turned, V* to) {
    for (int r = 0; r < kS; ++r)
      for (int c = 0; c < kS; ++c) to[c * kS + r] = static_cast<V>(turned ? block[c * kS + r] : block[r * kS + c]);
  }

  void pack(const HostVector<double>& value, const HostVector<double>& inverse) {
    const std::int64_t n = order_.count();
    const Pattern& p = pattern_;
    const auto block = [&](std::int64_t k) { return value.data() + k * kEntries; };
    begin_rows(lower_, [&](std::int64_t i) { return p.diagonal[at(i)] - p.start[at(i)]; });
    inverse_.resize(at(n * kEntries + kPadding), V(0));
    order_.each_group([&](std::size_t g) {
      for (std::int64_t i = order_.group[g]; i < order_.group[g + 1]; ++i) {
        std::int64_t to = lower_.start[at(i)];
        for (std::int64_t k = p.start[at(i)]; k < p.diagonal[at(i)]; ++k, ++to)
          lower_.column[at(to)] = p.column[at(k)], put_block(block(k), false, lower_.value.data() + to * kEntries);
        put_block(inverse.data() + i * kEntries, false, inverse_.data() + i * kEntries);
      }
    });
    if (symmetric_) return pack_transposed(value);
    begin_rows(upper_, [&](std::int64_t q) { return p.start[at(n - q)] - p.diagonal[at(n - 1 - q)] - 1; });
    order_.each_group([&](std::size_t g) {
      double product[kEntries];
      for (std::int64_t i = order_.group[g]; i < order_.group[g + 1]; ++i) {
        std::int64_t to = upper_.start[at(n - 1 - i)];
        for (std::int64_t k = p.start[at(i + 1)] - 1; k > p.diagonal[at(i)]; --k, ++to) {
          multiply_blocks(inverse.data() + i * kEntries, block(k), product, kS);
          upper_.column[at(to)] = p.column[at(k)], put_block(product, false, upper_.value.data() + to * kEntries);
        }
      }
    });
  }

  /// U = Lᵀ.
  void pack_transposed(const HostVector<double>& value) {
    const std::int64_t n = order_.count();
    HostVector<std::int64_t> counts(at(n), 0);
    for (const std::int32_t column : lower_.column) ++counts[at(column)];
    begin_rows(upper_, [&](std::int64_t q) { return counts[at(n - 1 - q)]; });
    HostVector<std::int64_t> next(upper_.start.begin(), upper_.start.end() - 1);
    for (std::int64_t i = n - 1; i >= 0; --i)
      for (std::int64_t k = pattern_.start[at(i)]; k < pattern_.diagonal[at(i)]; ++k) {
        const std::int64_t to = next[at(n - 1 - pattern_.column[at(k)])]++;
        upper_.column[at(to)] = static_cast<std::int32_t>(i);
        put_block(value.data() + k * kEntries, true, upper_.value.data() + to * kEntries);
      }
  }

  /// Room for rows of count_of(row) blocks.
  template <class CountOf>
  void begin_rows(RowsInOrder<V>& rows, const CountOf& count_of) {
    const std::int64_t n = order_.count();
    rows.start.resize(at(n + 1));
    rows.start[0] = 0;
    for (std::int64_t i = 0; i < n; ++i) rows.start[at(i + 1)] = rows.start[at(i)] + count_of(i);
    rows.column.resize(at(rows.start.back()));
    rows.value.resize(at(rows.start.back() * kEntries + kPadding));
    std::fill(rows.value.end() - kPadding, rows.value.end(), V(0));
  }

  /// A column of a block, widened; lanes behind the last row hold anything.
  SHARDMAT_INLINE static Pack column_of(const V* from) {
    if constexpr (kLanes == 1) return static_cast<double>(*from);
    else return __builtin_convertvector(load<kLanes>(from), Pack);
  }
  SHARDMAT_INLINE static void put(double* to, const Pack& sum) {
    if constexpr (kLanes == kS) store(to, sum);
    else
      for (int r = 0; r < kS; ++r) to[r] = sum[r];
  }
  /// sum −= (blocks of the row)·x.
  SHARDMAT_INLINE static void subtract_row(const RowsInOrder<V>& m, std::int64_t row, const double* x, Pack& sum) {
    const std::int64_t end = m.start[at(row + 1)];
    for (std::int64_t k = m.start[at(row)]; k < end; ++k) {
      const double* const of_column = x + std::int64_t{m.column[at(k)]} * kS;
      const V* const block = m.value.data() + k * kEntries;
      for (int c = 0; c < kS; ++c) sum -= column_of(block + c * kS) * of_column[c];
    }
  }

  SHARDMAT_INLINE void forward(double* x, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t i = begin; i < end; ++i) {
      double* const mine = x + i * kS;
      Pack sum = of_rows(mine);
      subtract_row(lower_, i, x, sum);
      put(mine, sum);
    }
  }
  /// Rows of upper_, which are those of U from the last to the first.
  SHARDMAT_INLINE void backward(double* x, std::int64_t begin, std::int64_t end) const {
    const std::int64_t last = order_.count() - 1;
    for (std::int64_t q = begin; q < end; ++q) {
      double* const mine = x + (last - q) * kS;
      Pack sum{};
      const V* const block = inverse_.data() + (last - q) * kEntries;
      for (int c = 0; c < kS; ++c) sum += column_of(block + c * kS) * mine[c];
      subtract_row(upper_, q, x, sum);
      put(mine, sum);
    }
  }
  SHARDMAT_INLINE static Pack of_rows(const double* x) {
    if constexpr (kLanes == kS) {
      return load<kLanes>(x);
    } else {
      Pack pack{};
      for (int r = 0; r < kS; ++r) pack[r] = x[r];
      return pack;
    }
  }

  /// Rows of `out` −= block·(rows of x), `columns` right-hand sides.
  SHARDMAT_INLINE static void subtract_block(const V* block, const double* x, double* out, int columns) {
    for (int c = 0; c < kS; ++c)
      for (int r = 0; r < kS; ++r) {
        const auto factor = static_cast<double>(block[c * kS + r]);
        for (int j = 0; j < columns; ++j) out[r * columns + j] -= factor * x[c * columns + j];
      }
  }
  SHARDMAT_INLINE void subtract_rows(const RowsInOrder<V>& m, std::int64_t row, const double* x, double* out,
                                     int columns) const {
    for (std::int64_t k = m.start[at(row)]; k < m.start[at(row + 1)]; ++k)
      subtract_block(m.value.data() + k * kEntries, x + std::int64_t{m.column[at(k)]} * kS * columns, out, columns);
  }
  SHARDMAT_INLINE void forward(double* x, int columns, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t i = begin; i < end; ++i) subtract_rows(lower_, i, x, x + i * kS * columns, columns);
  }
  SHARDMAT_INLINE void backward(double* x, int columns, std::int64_t begin, std::int64_t end) const {
    const std::int64_t last = order_.count() - 1;
    for (std::int64_t q = begin; q < end; ++q) {
      double* const mine = x + (last - q) * kS * columns;
      const V* const block = inverse_.data() + (last - q) * kEntries;
      for (int j = 0; j < columns; ++j) {
        double before[kS];
        for (int c = 0; c < kS; ++c) before[c] = mine[c * columns + j];
        for (int r = 0; r < kS; ++r) {
          double sum = 0;
          for (int c = 0; c < kS; ++c) sum += static_cast<double>(block[c * kS + r]) * before[c];
          mine[r * columns + j] = sum;
        }
      }
      subtract_rows(upper_, q, x, mine, columns);
    }
  }

  bool symmetric_;
  RowsInOrder<V> lower_, upper_;  ///< upper_: from the last row to the first, D⁻¹·U as columns descend
  HostVector<V> inverse_;         ///< of the diagonal blocks, then padding
};

template <class V, int kSize = 1>
std::unique_ptr<Factors> of_size(Order order, Pattern pattern, int size, bool symmetric) {
  if constexpr (kSize < kMostUnknowns)
    if (size != kSize) return of_size<V, kSize + 1>(std::move(order), std::move(pattern), size, symmetric);
  return std::make_unique<FactorsOf<V, kSize>>(std::move(order), std::move(pattern), symmetric);
}

}  // namespace

std::unique_ptr<Factors> make_factors(Order order, Pattern pattern, int size, bool symmetric, ValueType inner) {
  if (inner == ValueType::f32) return of_size<float>(std::move(order), std::move(pattern), size, symmetric);
  return of_size<double>(std::move(order), std::move(pattern), size, symmetric);
}

}  // namespace shardmat::incomplete
