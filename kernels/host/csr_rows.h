// Products of CSR rows on the host, and ranges of rows of about equal work for host threads.
//
// Order of summation: entry k of a row is added to sum k mod 4, so that additions of one row overlap; in the end
// (sum 0 + sum 1) + (sum 2 + sum 3).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/formats/csr.h"
#include "kernels/host/even_starts.h"
#include "kernels/host/lanes.h"

namespace shardmat {

/// The first entry of a row.
inline std::int64_t offset_of_row(const CsrStorage& a, std::int64_t row) {
  return a.wide_offsets ? a.row_ptr.as<std::int64_t>()[row] : a.row_ptr.as<std::int32_t>()[row];
}

/// First rows of the ranges, then the number of rows. The work of a row is its number of nonzeros + 1.
inline std::vector<std::int64_t> even_row_starts(const CsrStorage& a) {
  return even_starts(a.rows, [&](std::int64_t row) { return row + offset_of_row(a, row); });
}

/// The sum of values[k]·x[col_idx[k]] for k < count.
template <class Set, class T>
SHARDMAT_INLINE T sum_of_row(const T* values, const std::int32_t* col_idx, std::int64_t count, const T* x) {
  constexpr int kLanes = std::min<int>(Set::kBytes / sizeof(T), 4), kPacks = 4 / kLanes;
  Lanes<T, kLanes> sums[kPacks] = {};
  std::int64_t k = 0;
  for (; k + 4 <= count; k += 4)
    for (int p = 0; p < kPacks; ++p) {
      Lanes<T, kLanes> of_x;
      for (int j = 0; j < kLanes; ++j) of_x[j] = x[col_idx[k + p * kLanes + j]];
      add_product<Set>(sums[p], load<kLanes>(values + k + p * kLanes), of_x);
    }
  T sum[4];
  std::memcpy(sum, sums, sizeof sum);
  if (k < count) add_product<Set>(sum[0], values[k], x[col_idx[k]]);
  if (k + 1 < count) add_product<Set>(sum[1], values[k + 1], x[col_idx[k + 1]]);
  if (k + 2 < count) add_product<Set>(sum[2], values[k + 2], x[col_idx[k + 2]]);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

}  // namespace shardmat
