// Products of slices of packed rows with block = lanes = 1 and K columns of x, each of which lies in one piece: the lanes of
// a slice are those of vector instructions, and a value that is loaded is multiplied with every column. A column has the
// same bits for every K.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/host/csr_rows.h"
#include "kernels/host/packed_slices.h"

namespace shardmat::packed {

/// Calls f(std::integral_constant<int, i>) for an i below N.
template <int N, class F>
SHARDMAT_INLINE void with_constant(int i, const F& f) {
  [&]<int... I>(std::integer_sequence<int, I...>) SHARDMAT_INLINE_LAMBDA {
    ((i == I ? f(std::integral_constant<int, I>{}) : void()), ...);
  }
  (std::make_integer_sequence<int, N>{});
}

constexpr int kHalf = kPackedLanes / 2;

/// How rows lie from lane `begin` on: the first split of them are consecutive, and the others of `lanes`, too, further down.
/// `lanes`: all are consecutive; 0: they lie otherwise, or the slice has fewer rows, or is stored as CSR.
inline std::uint8_t row_split(const SingleRowSlice<double>& slice, int begin, int lanes) {
  if (slice.is_csr() || slice.rows() < begin + lanes) return 0;
  const int end = begin + lanes;
  const auto follows = [&](int lane) { return slice.row(lane) == slice.row(lane - 1) + 1; };
  int next = begin + 1;
  while (next < end && follows(next)) ++next;
  if (next < end && slice.row(next) < slice.row(next - 1)) return 0;
  for (int lane = next + 1; lane < end; ++lane)
    if (!follows(lane)) return 0;
  return static_cast<std::uint8_t>(next - begin);
}

/// row_split() of a slice's lanes together, and of each half. Halves matter if the lanes together have several gaps.
struct RowSplits {
  std::uint8_t whole, half[2];
};
inline std::vector<RowSplits> row_splits(const PackedStorage& a) {
  constexpr std::int64_t kGrain = 1 << 14;  // slices that are worth a thread of their own
  std::vector<RowSplits> splits(static_cast<std::size_t>(a.slices));
  parallel_ranges(a.slices, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t s = begin; s < end; ++s) {
      const SingleRowSlice<double> slice(a, s);
      splits[static_cast<std::size_t>(s)] = {row_split(slice, 0, kPackedLanes),
                                             {row_split(slice, 0, kHalf), row_split(slice, kHalf, kHalf)}};
    }
  });
  return splits;
}

/// Sums of P vectors of lanes for K columns.
template <class Set, class T, int K, int P>
struct LaneSums {
  static constexpr int kLanes = static_cast<int>(Set::kBytes / sizeof(T)), kAtOnce = P * kLanes;
  using Pack = Lanes<T, kLanes>;

  Pack sums[P][K] = {};

  /// Adds values · of_x(p, c) for each pack of lanes p and column c.
  template <class OfX>
  SHARDMAT_INLINE void add(const T* values, const OfX& of_x) {
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) {
      const Pack value = load<kLanes>(values + p * kLanes);
#pragma GCC unroll 4
      for (int c = 0; c < K; ++c) add_product<Set>(sums[p][c], value, of_x(p, c));
    }
  }
  /// Adds values · x[c][column(lane)].
  template <class Column>
  SHARDMAT_INLINE void add_gathered(const T* values, const std::array<const T*, K>& x, const Column& column) {
    add(values, [&](int p, int c) SHARDMAT_INLINE_LAMBDA {
      Pack of_x;
#pragma GCC unroll 16
      for (int j = 0; j < kLanes; ++j) of_x[j] = x[static_cast<std::size_t>(c)][column(p * kLanes + j)];
      return of_x;
    });
  }

  /// sum[c][lane].
  SHARDMAT_INLINE void copy_to(T (&sum)[K][kAtOnce]) const {
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
      for (int c = 0; c < K; ++c) std::memcpy(sum[c] + p * kLanes, &sums[p][c], sizeof sums[p][c]);
  }
};

/// As many vectors of lanes as leave registers for the operands: all of a slice, or an even part of them.
template <class Set, class T, int K>
constexpr int most_packs() {
  int packs = static_cast<int>(kPackedLanes * sizeof(T) / Set::kBytes);
  while (K > 1 && packs > 1 && packs * K > Set::kRegisters - 4) packs /= 2;
  return packs;
}

// A vector of lanes reads consecutive entries of x where its rows are consecutive. Where one gap lies between them, it takes
// the lanes before the gap from one load and the others from a second one, which ends with the last row: rows ascend, so
// that neither load leaves the columns between those of the first and of the last row.

/// P vectors of lanes from `begin` on, whose rows are first, first + 1 … for lanes before begin + split, and second + lane -
/// begin for those behind: one vector at most has a gap.
template <class Set, class T, int K, int P, class Store>
SHARDMAT_INLINE void multiply_two_ranges(const SingleRowSlice<T>& slice, int begin, int split, std::int64_t first,
                                         std::int64_t second, const std::array<const T*, K>& x, const Store& store) {
  using Sums = LaneSums<Set, T, K, P>;
  constexpr int kLanes = Sums::kLanes;
  Sums sums;
  std::array<const T*, K> head, tail;
  for (std::size_t c = 0; c < K; ++c) head[c] = x[c] + first, tail[c] = x[c] + second;
  const auto from_one = [&](const std::array<const T*, K>& range) SHARDMAT_INLINE_LAMBDA {
    slice.for_each_shared_slot(
        [&](const T* values, std::int32_t delta) SHARDMAT_INLINE_LAMBDA {
          sums.add(values + begin, [&](int p, int c) SHARDMAT_INLINE_LAMBDA {
            return load<kLanes>(range[static_cast<std::size_t>(c)] + delta + p * kLanes);
          });
        },
        begin == 0);
  };
  if (split >= Sums::kAtOnce) {
    from_one(head);
  } else if (Sums::kAtOnce < kPackedLanes && split <= 0) {
    from_one(tail);
  } else {
    using Int = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
    Lanes<Int, kLanes> before_gap;
    for (int j = 0; j < kLanes; ++j) before_gap[j] = j < split % kLanes ? -1 : 0;
    with_constant<P>(split / kLanes, [&]<int Gap>(std::integral_constant<int, Gap>) SHARDMAT_INLINE_LAMBDA {
      slice.for_each_shared_slot(
          [&](const T* values, std::int32_t delta) SHARDMAT_INLINE_LAMBDA {
            sums.add(values + begin, [&](int p, int c) SHARDMAT_INLINE_LAMBDA {
              const T *const near = head[static_cast<std::size_t>(c)] + delta + p * kLanes,
                             *const far = tail[static_cast<std::size_t>(c)] + delta + p * kLanes;
              if (p < Gap) return load<kLanes>(near);
              if (p > Gap) return load<kLanes>(far);
              return before_gap ? load<kLanes>(near) : load<kLanes>(far);
            });
          },
          begin == 0);
    });
  }
  slice.for_each_other_slot(
      [&](const T* values, const auto& column) SHARDMAT_INLINE_LAMBDA {
        sums.add_gathered(values + begin, x, [&](int lane) SHARDMAT_INLINE_LAMBDA { return column(begin + lane); });
      },
      begin == 0);
  const int here = std::clamp(split, 0, Sums::kAtOnce);
  T sum[K][Sums::kAtOnce];
  sums.copy_to(sum);
  store(first, 0, here, sum);
  store(second, here, Sums::kAtOnce, sum);
}

/// `lanes` lanes from `begin` on, as row_split() says that their rows lie.
template <class Set, class T, int K, int kLanes, class Store>
SHARDMAT_INLINE void multiply_split(const SingleRowSlice<T>& slice, int begin, int split, const std::array<const T*, K>& x,
                                    const Store& store) {
  constexpr int kPacks = std::min<int>(most_packs<Set, T, K>(), kLanes * sizeof(T) / Set::kBytes),
                kAtOnce = LaneSums<Set, T, K, kPacks>::kAtOnce;
  const std::int64_t first = slice.row(begin), second = slice.row(begin + split % kLanes) - split % kLanes;
  for (int lane = 0; lane < kLanes; lane += kAtOnce)
    multiply_two_ranges<Set, T, K, kPacks>(slice, begin + lane, split - lane, first + lane, second + lane, x, store);
}

/// Any rows. Vectors with more than one gap gather.
template <class Set, class T, int K, class Store>
SHARDMAT_INLINE void multiply_any_rows(const SingleRowSlice<T>& slice, int begin, const std::array<const T*, K>& x,
                                       const Store& store) {
  constexpr int kPacks = most_packs<Set, T, K>();
  using Sums = LaneSums<Set, T, K, kPacks>;
  using Int = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  constexpr int kLanes = Sums::kLanes;
  Sums sums;
  const RowsOfLanes row = slice.rows_of_lanes();
  Lanes<Int, kLanes> before_gap[kPacks] = {};
  bool one_gap = true;
  for (int p = 0; p < kPacks; ++p) {
    const int first = begin + p * kLanes, end = first + kLanes;
    int gap = first + 1;
    while (gap < end && row[gap] == row[gap - 1] + 1) ++gap;
    one_gap &= gap == end || (row[gap] > row[first] && row[end - 1] - row[gap] == end - 1 - gap);
    for (int j = 0; j < kLanes; ++j) before_gap[p][j] = first + j < gap ? -1 : 0;
  }
  if (one_gap)
    slice.for_each_shared_slot(
        [&](const T* values, std::int32_t delta) SHARDMAT_INLINE_LAMBDA {
          sums.add(values + begin, [&](int p, int c) SHARDMAT_INLINE_LAMBDA {
            const T* const of_column = x[static_cast<std::size_t>(c)] + delta;
            const auto head = load<kLanes>(of_column + row[begin + p * kLanes]);
            const auto tail = load<kLanes>(of_column + row[begin + p * kLanes + kLanes - 1] - (kLanes - 1));
            return before_gap[p] ? head : tail;
          });
        },
        begin == 0);
  else
    slice.for_each_shared_slot(
        [&](const T* values, std::int32_t delta) SHARDMAT_INLINE_LAMBDA {
          std::array<const T*, K> shifted;
          for (std::size_t c = 0; c < K; ++c) shifted[c] = x[c] + delta;
          sums.add_gathered(values + begin, shifted, [&](int lane) SHARDMAT_INLINE_LAMBDA { return row[begin + lane]; });
        },
        begin == 0);
  slice.for_each_other_slot(
      [&](const T* values, const auto& column) SHARDMAT_INLINE_LAMBDA {
        sums.add_gathered(values + begin, x, [&](int lane) SHARDMAT_INLINE_LAMBDA { return column(begin + lane); });
      },
      begin == 0);
  T sum[K][Sums::kAtOnce];
  sums.copy_to(sum);
  for (int lane = 0; lane < std::min(Sums::kAtOnce, slice.rows() - begin); ++lane)
    store(slice.row(begin + lane) - lane, lane, lane + 1, sum);
}

/// Calls store(row, begin, end, sum) for the sums of a slice with the columns of x: sum[c][lane] of lanes `begin` to `end`,
/// where lane 0 would be `row`.
template <class Set, class T, int K, class Store>
SHARDMAT_INLINE void multiply_columns(const SingleRowSlice<T>& slice, const RowSplits& split,
                                      const std::array<const T*, K>& x, const Store& store) {
  // With fewer sums at once, additions would wait for each other.
  constexpr bool kHalvesPay = kHalf * sizeof(T) / Set::kBytes * K >= 4;
  if (split.whole > 0) {
    multiply_split<Set, T, K, kPackedLanes>(slice, 0, split.whole, x, store);
  } else if (kHalvesPay && split.half[0] > 0 && split.half[1] > 0) {
    for (int half = 0; half < 2; ++half) multiply_split<Set, T, K, kHalf>(slice, half * kHalf, split.half[half], x, store);
  } else if (slice.is_csr()) {
    for (int lane = 0; lane < slice.rows(); ++lane) {
      T sum[K][1];
      for (int c = 0; c < K; ++c)
        sum[c][0] = sum_of_row<Set>(slice.csr_values(lane), slice.csr_columns(lane), slice.csr_count(lane),
                                    x[static_cast<std::size_t>(c)]);
      store(slice.row(lane), 0, 1, sum);
    }
  } else {
    for (int begin = 0; begin < slice.rows(); begin += LaneSums<Set, T, K, most_packs<Set, T, K>()>::kAtOnce)
      multiply_any_rows<Set, T, K>(slice, begin, x, store);
  }
}

}  // namespace shardmat::packed
