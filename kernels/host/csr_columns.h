// Several columns of Y in one CSR row on the host. Each column is summed as csr_rows.h sums a single one.
#pragma once

#include <cstdint>

#include "kernels/host/dense_columns.h"

namespace shardmat {

/// The columns of a group in a row: entry k is added to sum k mod 4.
template <class Set, class Group, class A, class T>
SHARDMAT_INLINE void multiply_row_group(const A* values, const std::int32_t* col_idx, std::int64_t count,
                                        const ColumnsOfX<A>& x, const ColumnsOfY<T>& y, std::int64_t row,
                                        const Group& group) {
  constexpr int kLanes = Group::kLanes, kPacks = Group::kPacks;
  Lanes<T, kLanes> sum[4][kPacks] = {};
  const auto add = [&](int to, std::int64_t k) SHARDMAT_INLINE_LAMBDA {
    const T value = widen<1>(values + k);
#pragma GCC unroll 8
    for (int p = 0; p < kPacks; ++p) add_product<Set>(sum[to][p], value, x.template get<T, kLanes>(col_idx[k], group.at(p)));
  };
  std::int64_t k = 0;
  for (; k + 4 <= count; k += 4) add(0, k), add(1, k + 1), add(2, k + 2), add(3, k + 3);
  if (k < count) add(0, k);
  if (k + 1 < count) add(1, k + 1);
  if (k + 2 < count) add(2, k + 2);
#pragma GCC unroll 8
  for (int p = 0; p < kPacks; ++p) group.put(y, row, p, (sum[0][p] + sum[1][p]) + (sum[2][p] + sum[3][p]));
}

}  // namespace shardmat
