// Rows of X and Y for host products with several right-hand sides, row-major: a group of columns lies in vectors, whose sums
// stay in registers. Each column is summed as a single one would be, so that it has the same bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/base/types.h"
#include "kernels/host/lanes.h"

namespace shardmat {

/// Encodings of 16 bits, one after another, as numbers of 32.
template <int N>
SHARDMAT_INLINE Lanes<std::uint32_t, N> widen_bits(const std::uint16_t* from) {
  if constexpr (N == 1) return *from;
  else return __builtin_convertvector(load<N>(from), Lanes<std::uint32_t, N>);
}

/// Values as f32, one after another.
template <int N>
SHARDMAT_INLINE Lanes<float, N> widen(const Bf16* from) {
  const Lanes<std::uint32_t, N> bits = widen_bits<N>(&from->bits) << 16;
  Lanes<float, N> values;
  std::memcpy(&values, &bits, sizeof values);
  return values;
}
/// 2^112 moves the exponents from those of f16 to those of f32, subnormal values included. Infinities and NaN arrive above
/// the range of f16 and get the highest exponent.
template <int N>
SHARDMAT_INLINE Lanes<float, N> widen(const F16* from) {
  using Bits = Lanes<std::uint32_t, N>;
  const Bits all = widen_bits<N>(&from->bits);
  Bits bits = (all & 0x7fff) << 13;
  Lanes<float, N> values;
  std::memcpy(&values, &bits, sizeof values);
  values *= 0x1p112f;
  std::memcpy(&bits, &values, sizeof values);
  const Bits beyond = N == 1 ? -Bits(values >= 65536.0f) : Bits(values >= 65536.0f);  // all bits of a lane, or none
  bits |= (beyond & 0x7f800000) | (all & 0x8000) << 16;
  std::memcpy(&values, &bits, sizeof values);
  return values;
}
template <int N, class T>
requires std::is_floating_point_v<T> SHARDMAT_INLINE Lanes<T, N> widen(const T* from) { return load<N>(from); }

/// X as a kernel reads it: rows of stored values of type A, which begin `row` values apart.
template <class A>
struct ColumnsOfX {
  const A* data;
  std::int64_t row;

  /// Columns first … first + N - 1 of row i, as T.
  template <class T, int N>
  SHARDMAT_INLINE Lanes<T, N> get(std::int64_t i, std::int64_t first) const {
    return widen<N>(data + i * row + first);
  }
};

/// Y as a kernel writes it.
template <class T>
struct ColumnsOfY {
  T* data;
  std::int64_t row;
  T alpha, beta;

  ColumnsOfY(double alpha_, double beta_, void* y, std::int64_t ldy)
      : data(static_cast<T*>(y)), row(ldy), alpha(static_cast<T>(alpha_)), beta(static_cast<T>(beta_)) {}

  /// Y = alpha·sum + beta·Y for columns first … of row i, as many as a Pack holds.
  template <class Set, class Pack>
  SHARDMAT_INLINE void put(std::int64_t i, std::int64_t first, const Pack& sum) const {
    Pack product = alpha * sum;
    T* to = data + i * row + first;
    if (beta == T(0)) return store(to, product);
    round_product(product);
    add_product<Set>(product, beta, load<sizeof(Pack) / sizeof(T)>(to));
    store(to, product);
  }
};

/// Lanes of the vectors for a group of kColumns columns.
template <class Set, class T, int kColumns>
constexpr int kLanesOfGroup = std::min<int>(kColumns, Set::kBytes / sizeof(T));

/// Columns that a kernel sums together: W side by side. Where the last group has fewer columns, but more than half, its
/// vectors still are whole: they also read entries of the next row of X, and leave out what these become. So three columns
/// take as long as four, and the matrix is read once for them.
template <class Set, class T, int W, bool kWhole>
struct ColumnGroup {
  static constexpr int kLanes = kLanesOfGroup<Set, T, W>, kPacks = W / kLanes;
  using Pack = Lanes<T, kLanes>;

  std::int64_t first, columns;  ///< where the group begins; of X

  /// The first column of a pack.
  SHARDMAT_INLINE std::int64_t at(int pack) const { return first + pack * kLanes; }
  /// Y = alpha·sum + beta·Y in row i.
  SHARDMAT_INLINE void put(const ColumnsOfY<T>& y, std::int64_t i, int pack, const Pack& sum) const {
    if (kWhole || at(pack) + kLanes <= columns) return y.template put<Set>(i, at(pack), sum);
    T of_lane[kLanes];
    store(of_lane, sum);
    for (std::int64_t j = at(pack); j < columns; ++j) y.template put<Set>(i, j, of_lane[j - at(pack)]);
  }
};

/// Calls body(group) for groups of columns, the widest of kWidest, which cover all. `beyond`: vectors may read entries
/// behind the last column of a row.
template <class Set, class T, int kWidest, class Body>
SHARDMAT_INLINE void for_each_column_group(std::int64_t columns, bool beyond, const Body& body, std::int64_t first = 0) {
  for (; first + kWidest <= columns; first += kWidest) body(ColumnGroup<Set, T, kWidest, true>{first, columns});
  if constexpr (kWidest > 1) {
    if (first >= columns) return;
    if constexpr (kWidest > 2)
      if (beyond && columns - first > kWidest / 2) return body(ColumnGroup<Set, T, kWidest, false>{first, columns});
    for_each_column_group<Set, T, kWidest / 2>(columns, beyond, body, first);
  }
}

/// Whether vectors read beyond the last column of rows, and which rows of a matrix must not do so, because they have entries
/// in its last column: that row of X has nothing behind it.
class BeyondColumns {
 public:
  /// `in_last_column(i)` for each of `count` rows, block rows or slices. Of X whose rows begin where those before end.
  template <class InLastColumn>
  BeyondColumns(std::int64_t columns, std::int64_t count, const InLastColumn& in_last_column) : columns_(columns) {
    if ((columns & (columns - 1)) == 0) return;  // groups of 2, 4, 8 … cover all
    ends_.resize(static_cast<std::size_t>(count));
    parallel_ranges(count, 1 << 10, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) ends_[static_cast<std::size_t>(i)] = in_last_column(i) ? 1 : 0;
    });
  }
  /// Whether rows begin … end - 1 may, where the rows of X begin `ldx` entries apart. Gaps between them are not read.
  bool may(std::int64_t begin, std::int64_t end, std::int64_t ldx) const {
    if (ends_.empty() || ldx != columns_) return false;
    return std::none_of(ends_.begin() + begin, ends_.begin() + end, [](std::uint8_t ends) { return ends != 0; });
  }
  std::int64_t bytes() const { return std::ssize(ends_); }

 private:
  std::int64_t columns_;
  std::vector<std::uint8_t> ends_;
};

/// Calls body(std::integral_constant<int, W>(), first) for groups of W columns from the widest, kWidest, to 1.
template <int kWidest, class Body>
SHARDMAT_INLINE void for_each_group(std::int64_t columns, const Body& body, std::int64_t first = 0) {
  for (; first + kWidest <= columns; first += kWidest) body(std::integral_constant<int, kWidest>(), first);
  if constexpr (kWidest > 1)
    if (first < columns) for_each_group<kWidest / 2>(columns, body, first);
}

}  // namespace shardmat
