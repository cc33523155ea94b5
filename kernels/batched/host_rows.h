// Rows of batches on the host. The sums of a group of columns lie in vectors and stay in registers.
//
// Order of summation: a row with up to 16 entries has one sum, from its first entry to its last. In a longer row entry k is
// added to sum k mod 4, so that additions overlap; in the end (sum 0 + sum 1) + (sum 2 + sum 3). If the rows of a matrix
// have different lengths, 0·0 is added to a row with up to 3 entries, which changes nothing but the sign of a zero.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

#include "kernels/batched/matrix_of.h"
#include "kernels/batched/operands.h"
#include "kernels/host/dense_columns.h"
#include "kernels/host/even_starts.h"

namespace shardmat::batched {

constexpr std::int64_t kShortRow = 16;  ///< most entries of a row with one sum

/// The rows of a matrix in compressed form, and the rows of X that belong to its columns. Row i has the entries
/// row_ptr[i] … row_ptr[i + 1] - 1. `X`: type of X.
template <class A, class X = A>
struct HostRows {
  const std::int32_t* row_ptr;
  const std::int32_t* col_idx;
  const A* values;
  ColumnsOfX<X, true> x;
  bool uneven;  ///< has_uneven_rows() of the matrix
};

/// True if the rows of the matrix have different lengths for certain. The CPU cannot predict their ends then.
inline bool has_uneven_rows(const DeviceBatch& batch, std::size_t matrix) {
  const std::int32_t rows = batch.at.first_row[matrix + 1] - batch.at.first_row[matrix];
  return rows > 0 && (batch.at.first_entry[matrix + 1] - batch.at.first_entry[matrix]) % rows != 0;
}

/// Work of a product in groups of 16 columns, which take about half a nanosecond each.
struct WorkOf {
  std::int64_t row, entry;
};

/// First rows of tasks of about equal work, then the number of rows. Takes all rows of a matrix to be equally long: row
/// pointers may change from product to product, the offsets of the matrices do not.
inline std::vector<std::int64_t> task_starts(const DeviceBatch& batch, const WorkOf& work) {
  constexpr std::int64_t kFewest = 1 << 16;  // for several threads: less is done before a sleeping one begins
  const BatchOffsets& at = batch.at;
  if (work.row * at.rows() + work.entry * at.nnz() < kFewest) return {0, at.rows()};
  return even_starts(at.rows(), [&](std::int64_t row) {
    const auto i = static_cast<std::size_t>(matrix_of(row, at.first_row.data(), static_cast<std::int32_t>(at.count())));
    const std::int64_t rows = std::max(1, at.first_row[i + 1] - at.first_row[i]);
    const std::int64_t entries = at.first_entry[i + 1] - at.first_entry[i];
    const std::int64_t before = at.first_entry[i] + entries * std::min(rows, row - at.first_row[i]) / rows;
    return work.row * row + work.entry * before;
  });
}

/// Keeps the compiler from fusing a product with a sum that it is added to.
template <class Pack>
SHARDMAT_INLINE void round_product(Pack& product) {
#if defined(__x86_64__)
  asm("" : "+x"(product));
#elif defined(__aarch64__)
  asm("" : "+w"(product));
#else
  asm("" : "+m"(product));
#endif
}

/// Writes columns first … of a row of Y, N columns, from their sums. kPlain: Y is just the sums.
template <class Set, bool kPlain, int N, class T, class A, class Pack>
SHARDMAT_INLINE void finish(const Operands<T, A>& v, std::int64_t row, std::int64_t first, const Pack& sum) {
  T* y = v.y + row * v.ldy + first;
  if constexpr (kPlain) return store(y, sum);
  Pack out = v.alpha * sum;
  round_product(out);
  if (v.beta != T(0)) add_product<Set>(out, v.beta, load<N>(y));
  if (v.bias != nullptr) out += load<N>(v.bias + first);
  if (v.relu) out = out < T(0) ? Pack{} : out;
  store(y, out);
}

/// Sums of entries begin … end - 1 of a row in columns first …, in P vectors of N columns.
template <class Set, int N, int P, class T, class A, class X>
SHARDMAT_INLINE void sum_short_row(const HostRows<A, X>& a, std::int64_t begin, std::int64_t end, std::int64_t first,
                                   Lanes<T, N> (&sum)[P]) {
  for (std::int64_t k = begin; k < end; ++k) {
    const T value = static_cast<T>(a.values[k]);
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
    const T entry = static_cast<T>(a.values[k]);
    Bits bits;
    std::memcpy(&bits, &entry, sizeof bits);
    bits &= static_cast<Bits>(all);
    T value;
    std::memcpy(&value, &bits, sizeof value);
    const X* from = a.x.data + a.col_idx[k] * a.x.row + first;
    from = reinterpret_cast<const X*>((reinterpret_cast<std::uintptr_t>(from) & all) |
                                      (reinterpret_cast<std::uintptr_t>(zeros) & ~all));
    const ColumnsOfX<X, true> x{from, 0, 1};
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

}  // namespace shardmat::batched
