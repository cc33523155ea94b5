// Rows of blocks as host kernels read them, and ranges of block rows of about equal work for host threads.
//
// Order of summation of bcsr: row r of a block row has a sum for each column c of its blocks, over the blocks from left to
// right. For 2×2 blocks there are two such sums, over the blocks at even and at odd places. The two are added first, then
// the sums of the columns from left to right.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/formats/bcsr.h"
#include "kernels/host/even_starts.h"
#include "kernels/host/lanes.h"

namespace shardmat {

/// The arrays of a storage of blocks (bcsr, symmetric) with values of type T.
template <class T>
struct BlockRows {
  template <class BlockStorage>
  explicit BlockRows(const BlockStorage& a)
      : narrow_block_ptr(a.wide_offsets ? nullptr : a.block_ptr.template as<std::int32_t>()),
        wide_block_ptr(a.block_ptr.template as<std::int64_t>()),
        block_col(a.block_col.template as<std::int32_t>()),
        values(a.values.template as<T>()),
        rows(a.rows),
        cols(a.cols) {}

  /// The first block of block row i.
  SHARDMAT_INLINE std::int64_t offset(std::int64_t i) const {
    return narrow_block_ptr != nullptr ? narrow_block_ptr[i] : wide_block_ptr[i];
  }

  const std::int32_t* narrow_block_ptr;  ///< null if offsets are wide
  const std::int64_t* wide_block_ptr;
  const std::int32_t* block_col;
  const T* values;
  std::int64_t rows, cols;
};

/// Sums for each entry of a block, so that additions overlap: small blocks have few entries.
template <int B>
constexpr int kChains = B == 2 ? 2 : 1;

/// Calls body(std::integral_constant<int, B>) for the size of the blocks, from kLeast to 6.
template <int kLeast = 2, class Body>
SHARDMAT_INLINE void with_block_size(int block, const Body& body) {
  if constexpr (kLeast < 6)
    if (block != kLeast) return with_block_size<kLeast + 1>(block, body);
  body(std::integral_constant<int, kLeast>());
}

/// First block rows of ranges of about equal work, then the number of block rows.
inline std::vector<std::int64_t> even_block_row_starts(const BcsrStorage& a) {
  const BlockRows<float> rows(a);
  const std::int64_t area = a.block() * a.block();
  return even_starts(a.block_rows, [&](std::int64_t i) { return rows.offset(i) * area + i * a.block(); });
}

}  // namespace shardmat
