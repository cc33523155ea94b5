// Symmetric storage as its host kernels read it, and its work cut into ranges of block rows for host threads.
//
// Block row i adds B·x_j to y_i and Bᵀ·x_i to y_j for each block B in column j < i. Each range belongs to one task and
// writes y in its own rows. What it adds to rows above goes to a buffer; when all ranges are done, the buffers are added to
// y in the order of the ranges. So y depends on the number of ranges, which is the number of threads, and on nothing else
// that varies.
//
// Order of summation: y_i is the sum of block row i, then what the rows below in the same range add, from top to bottom,
// then the row's part of the rest, as in csr, then what other ranges add, range by range. Each row of a block row has a sum
// for each column of a block, which goes over the blocks from left to right; in the end they are added from left to right.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/base/host_vector.h"
#include "kernels/base/parallel.h"
#include "kernels/formats/symmetric.h"
#include "kernels/host/block_rows.h"
#include "kernels/host/lanes.h"

namespace shardmat {

/// The blocks of a SymmetricStorage with values of type T.
template <class T>
struct LowerBlocks : BlockRows<T> {
  explicit LowerBlocks(const SymmetricStorage& a) : BlockRows<T>(a), columns(std::min(a.rows, a.cols - a.first_column)) {}

  std::int64_t columns;  ///< from first_column on; fewer than rows where a matrix has more rows than columns
};

/// Block rows begin … end - 1. They add to rows of blocks first_above … begin - 1, too.
struct SymmetricRange {
  std::int64_t begin, end, first_above;
  std::int64_t buffer;  ///< where the entries for the rows above begin, in rows
};

/// The ranges of a matrix, one a thread.
class SymmetricRanges {
 public:
  explicit SymmetricRanges(const SymmetricStorage& a) : block_(a.block()) {
    const LowerBlocks<float> blocks(a);
    const std::int64_t area = std::int64_t{block_} * block_, all = blocks.offset(a.block_rows) * area + a.rows;
    const std::int64_t ranges = std::clamp<std::int64_t>(all / kWorkOfAThread, 1, threads_for(all));
    std::int64_t begin = 0;
    for (std::int64_t r = 0; r < ranges; ++r) {
      std::int64_t end = begin;
      while (end < a.block_rows && (blocks.offset(end) * area + end * block_ < all / ranges * (r + 1) || r + 1 == ranges))
        ++end;
      std::int64_t first_above = begin;
      for (std::int64_t i = begin; i < end; ++i)
        if (blocks.offset(i) < blocks.offset(i + 1))
          first_above = std::min<std::int64_t>(first_above, blocks.block_col[blocks.offset(i)]);
      ranges_.push_back({begin, end, first_above, buffer_rows_});
      buffer_rows_ += (begin - first_above) * block_;
      begin = end;
    }
  }

  std::int64_t count() const { return std::ssize(ranges_); }
  const SymmetricRange& operator[](std::int64_t r) const { return ranges_[static_cast<std::size_t>(r)]; }
  /// Rows in the buffers of all ranges.
  std::int64_t buffer_rows() const { return buffer_rows_; }
  /// The rows of range r to which range s adds: [first, second).
  std::pair<std::int64_t, std::int64_t> shared_rows(std::int64_t r, std::int64_t s) const {
    return {std::max((*this)[r].begin, (*this)[s].first_above) * block_, (*this)[r].end * block_};
  }

 private:
  int block_;
  std::int64_t buffer_rows_ = 0;
  std::vector<SymmetricRange> ranges_;
};

}  // namespace shardmat
