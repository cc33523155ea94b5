// Columns of X and Y for host products with several right-hand sides: a group of columns lies in vectors, whose sums stay in
// registers. Each column is summed as a single one would be, so that it has the same bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <type_traits>

#include "kernels/base/dense.h"
#include "kernels/base/types.h"
#include "kernels/host/lanes.h"
#include "kernels/spmm_plan.h"

namespace shardmat {

/// Values as f32, one after another.
template <int N>
SHARDMAT_INLINE Lanes<float, N> widen(const Bf16* from) {
  using Bits = Lanes<std::uint32_t, N>;
  Bits bits = __builtin_convertvector(load<N>(&from->bits), Bits) << 16;
  Lanes<float, N> values;
  std::memcpy(&values, &bits, sizeof values);
  return values;
}
/// 2^112 moves the exponents from those of f16 to those of f32, subnormal values included. Infinities and NaN arrive above
/// the range of f16 and get the highest exponent.
template <int N>
SHARDMAT_INLINE Lanes<float, N> widen(const F16* from) {
  using Bits = Lanes<std::uint32_t, N>;
  const Bits all = __builtin_convertvector(load<N>(&from->bits), Bits);
  Bits bits = (all & 0x7fff) << 13;
  Lanes<float, N> values;
  std::memcpy(&values, &bits, sizeof values);
  values *= 0x1p112f;
  std::memcpy(&bits, &values, sizeof values);
  bits |= (Bits(values >= 65536.0f) & 0x7f800000) | (all & 0x8000) << 16;
  std::memcpy(&values, &bits, sizeof values);
  return values;
}
template <int N, class T>
requires std::is_floating_point_v<T> SHARDMAT_INLINE Lanes<T, N> widen(const T* from) { return load<N>(from); }

/// X as a kernel reads it: entry (i, j) is at i·row + j·column. kUnit: column = 1, known to the compiler. A: stored values.
template <class A, bool kUnit>
struct ColumnsOfX {
  const A* data;
  std::int64_t row, column;

  /// Columns first … first + N - 1 of row i, as T.
  template <class T, int N>
  SHARDMAT_INLINE Lanes<T, N> get(std::int64_t i, std::int64_t first) const {
    const A* from = data + i * row + first * (kUnit ? 1 : column);
    if constexpr (N == 1) {
      return static_cast<T>(*from);
    } else if constexpr (kUnit) {
      return widen<N>(from);
    } else {
      Lanes<T, N> lanes;
      for (int j = 0; j < N; ++j) lanes[j] = static_cast<T>(from[j * column]);
      return lanes;
    }
  }
};

/// Y as a kernel writes it.
template <class T>
struct ColumnsOfY {
  T* data;
  std::int64_t row, column;
  T alpha, beta;

  /// Y = alpha·sum + beta·Y for columns first … of row i, as many as a Pack holds.
  template <class Set, class Pack>
  SHARDMAT_INLINE void put(std::int64_t i, std::int64_t first, const Pack& sum) const {
    const Pack product = alpha * sum;
    T* to = data + i * row + first * column;
    if (beta == T(0) && column == 1) return store(to, product);
    T lanes[sizeof(Pack) / sizeof(T)];
    std::memcpy(lanes, &product, sizeof product);
    for (std::size_t j = 0; j < std::size(lanes); ++j)
      shardmat::put<Set>(to[static_cast<std::int64_t>(j) * column], lanes[j], beta);
  }
};

/// Lanes of the vectors for a group of kColumns columns.
template <class Set, class T, int kColumns>
constexpr int kLanesOfGroup = std::min<int>(kColumns, Set::kBytes / sizeof(T));

/// Calls body(std::integral_constant<int, W>(), first) for groups of W columns from the widest, kWidest, to 1.
template <int kWidest, class Body>
SHARDMAT_INLINE void for_each_group(std::int64_t columns, const Body& body, std::int64_t first = 0) {
  for (; first + kWidest <= columns; first += kWidest) body(std::integral_constant<int, kWidest>(), first);
  if constexpr (kWidest > 1)
    if (first < columns) for_each_group<kWidest / 2>(columns, body, first);
}

/// Calls body(X, Y) for the operands of y = alpha·A·x + beta·y in their types and orders. A: the type of stored values.
template <class A, class T, class Body>
void with_columns(const RightHandSides& rhs, double alpha, const void* x, std::int64_t ldx, double beta, void* y,
                  std::int64_t ldy, const Body& body) {
  const DenseStrides of_x = strides(rhs.x, ldx), of_y = strides(rhs.y, ldy);
  const ColumnsOfY<T> out{static_cast<T*>(y), of_y.row, of_y.column, static_cast<T>(alpha), static_cast<T>(beta)};
  if (rhs.x == DenseOrder::row_major) body(ColumnsOfX<A, true>{static_cast<const A*>(x), of_x.row, of_x.column}, out);
  else body(ColumnsOfX<A, false>{static_cast<const A*>(x), of_x.row, of_x.column}, out);
}

}  // namespace shardmat
