#include "kernels/batched/host_rows.h"

#include <cstring>
#include <type_traits>

#include "kernels/batched/host_columns.h"

namespace shardmat::batched {
namespace {

/// Sums of entries begin … end - 1 of a row in columns first …, in P vectors of N columns.
template <class Set, int N, int P, class T, class A, class X>
SHARDMAT_INLINE void sum_short_row(const HostRows<A, X>& a, std::int64_t begin, std::int64_t end, std::int64_t first,
                                   Lanes<T, N> (&sum)[P]) {
  for (std::int64_t k = begin; k < end; ++k) {
    const T value = widen<1>(a.values + k);
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) add_product<Set>(sum[p], value, a.x.template get<T, N>(a.col_idx[k], first + p * N));
  }
}
template <class Set, int N, int P, class T, class A, class X>
SHARDMAT_INLINE void sum_long_row(const HostRows<A, X>& a, std::int64_t begin, std::int64_t end, std::int64_t first,
                                  Lanes<T, N> (&total)[P]) {
  Lanes<T, N> sum[4][P] = {};
  std::int64_t k = begin;
  for (; k + 4 <= end; k += 4)
#pragma GCC unroll 4
    for (int s = 0; s < 4; ++s) sum_short_row<Set, N, P, T>(a, k + s, k + s + 1, first, sum[s]);
#pragma GCC unroll 4
  for (int s = 0; s < 3; ++s)
    if (k + s < end) sum_short_row<Set, N, P, T>(a, k + s, k + s + 1, first, sum[s]);
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) total[p] = (sum[0][p] + sum[1][p]) + (sum[2][p] + sum[3][p]);
}

/// The same for 1 to 4 entries, always four terms, so that no branch depends on their number: the missing ones are 0·0.
template <class Set, int N, int P, class T, class A, class X>
SHARDMAT_INLINE void sum_four(const HostRows<A, X>& a, std::int64_t begin, std::int64_t count, std::int64_t first,
                              Lanes<T, N> (&sum)[P]) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  alignas(64) static constexpr X zeros[N * P] = {};
#pragma GCC unroll 4
  for (std::int64_t s = 0; s < 4; ++s) {
    const std::uint64_t all = s < count ? ~std::uint64_t{0} : 0;
    const std::int64_t k = begin + (s & static_cast<std::int64_t>(all));
    const T entry = widen<1>(a.values + k);
    Bits bits;
    std::memcpy(&bits, &entry, sizeof bits);
    bits &= static_cast<Bits>(all);
    T value;
    std::memcpy(&value, &bits, sizeof value);
    const X* from = a.x.data + a.col_idx[k] * a.x.row + first;
    from = reinterpret_cast<const X*>((reinterpret_cast<std::uintptr_t>(from) & all) |
                                      (reinterpret_cast<std::uintptr_t>(zeros) & ~all));
    const ColumnsOfX<X> x{from, 0};
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) add_product<Set>(sum[p], value, x.template get<T, N>(0, p * N));
  }
}

/// Calls put(std::integral_constant<int, N>(), column, sum of N columns) for columns first … first + W - 1 of row i.
template <class Set, int W, class T, class A, class X, class Put>
SHARDMAT_INLINE void sum_row(const HostRows<A, X>& a, std::int64_t i, std::int64_t first, const Put& put) {
  constexpr int kLanes = kLanesOfGroup<Set, T, W>, kPacks = W / kLanes;
  const std::int64_t begin = a.row_ptr[i], end = a.row_ptr[i + 1];
  const auto put_all = [&]<int P>(std::int64_t column, const Lanes<T, kLanes>(&sums)[P]) SHARDMAT_INLINE_LAMBDA {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) put(std::integral_constant<int, kLanes>(), column + p * kLanes, sums[p]);
  };
  if (end - begin <= kShortRow) {
    Lanes<T, kLanes> sums[kPacks] = {};
    if (a.uneven && static_cast<std::uint64_t>(end - begin - 1) < 4)
      sum_four<Set, kLanes, kPacks, T>(a, begin, end - begin, first, sums);
    else sum_short_row<Set, kLanes, kPacks, T>(a, begin, end, first, sums);
    return put_all.template operator()<kPacks>(first, sums);
  }
  constexpr int kFit = std::min(kPacks, Set::kRegisters / 8);  // four sums each
  for (int p = 0; p < kPacks; p += kFit) {
    Lanes<T, kLanes> sums[kFit];
    sum_long_row<Set, kLanes, kFit, T>(a, begin, end, first + p * kLanes, sums);
    put_all.template operator()<kFit>(first + p * kLanes, sums);
  }
}

/// Columns of the widest group.
template <class Set, class T>
constexpr int kWidestGroup = static_cast<int>(4 * Set::kBytes / sizeof(T));

/// A few rows at a time: they come from cache when the next group of columns needs them. Takes copies, which stay in
/// registers: a store to Y could change what a reference refers to.
template <class Set, class T, class A, class X>
SHARDMAT_INLINE void multiply_in_groups(Operands<T, X> y, HostRows<A, X> a, std::int64_t rows) {
  const bool plain = y.plain();
  // Short rows of Y are finished one by one, because memory is faster if it is written in order.
  constexpr std::int64_t kShort = 1024 / sizeof(T);
  const std::int64_t together = y.columns <= kWidestGroup<Set, T> ? 64 : y.columns <= kShort ? 1 : 8;
  for (std::int64_t from = 0; from < rows; from += together)
    for_each_group<kWidestGroup<Set, T>>(
        y.columns, [&]<int W>(std::integral_constant<int, W>, std::int64_t first) SHARDMAT_INLINE_LAMBDA {
          for (std::int64_t i = from; i < std::min(rows, from + together); ++i)
            sum_row<Set, W, T>(a, i, first,
                               [&]<int N>(std::integral_constant<int, N>, std::int64_t column, const auto& sum)
                                   SHARDMAT_INLINE_LAMBDA { finish<Set, N>(y, plain, i, column, sum); });
        });
}

}  // namespace

template <class T, class A, class X>
void multiply_rows(Isa isa, const Operands<T, X>& y, const HostRows<A, X>& a, std::int64_t rows) {
  run_compiled_for(isa, [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA { multiply_in_groups<Set>(y, a, rows); });
}

template void multiply_rows(Isa, const Operands<float, float>&, const HostRows<float, float>&, std::int64_t);
template void multiply_rows(Isa, const Operands<double, double>&, const HostRows<double, double>&, std::int64_t);
template void multiply_rows(Isa, const Operands<float, F16>&, const HostRows<F16, F16>&, std::int64_t);
template void multiply_rows(Isa, const Operands<float, Bf16>&, const HostRows<Bf16, Bf16>&, std::int64_t);
template void multiply_rows(Isa, const Operands<float, float>&, const HostRows<F16, float>&, std::int64_t);
template void multiply_rows(Isa, const Operands<float, float>&, const HostRows<Bf16, float>&, std::int64_t);

}  // namespace shardmat::batched
