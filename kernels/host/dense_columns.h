// Rows of X and Y for host products with several right-hand sides, row-major: a group of columns lies in vectors, whose sums
// stay in registers. Each column is summed as a single one would be, so that it has the same bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

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

/// Calls body(std::integral_constant<int, W>(), first) for groups of W columns from the widest, kWidest, to 1.
template <int kWidest, class Body>
SHARDMAT_INLINE void for_each_group(std::int64_t columns, const Body& body, std::int64_t first = 0) {
  for (; first + kWidest <= columns; first += kWidest) body(std::integral_constant<int, kWidest>(), first);
  if constexpr (kWidest > 1)
    if (first < columns) for_each_group<kWidest / 2>(columns, body, first);
}

}  // namespace shardmat
