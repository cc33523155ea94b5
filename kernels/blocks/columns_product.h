// Products of a matrix of dense blocks with several vectors at once on a GPU, for the small levels of multigrid: the packed
// format streams long rows of many nodes, and leaves most of a GPU idle where there are few.
//
//   lanes beside each other have the columns of X of one block, and so many blocks of a row as fit go into a warp; where
//   rows are few and long, four warps have a row
//
// Each column is summed in an order of its own blocks alone: other columns change no bit of it.
//
// Threads: as Plan.
#pragma once

#include <cstdint>

#include "kernels/base/device.h"
#include "kernels/base/types.h"
#include "kernels/blocks/block_rows.h"
#include "kernels/blocks/stored_blocks.h"

namespace shardmat::blocks {

class ColumnsProduct {
 public:
  /// Whether blocks of these sizes and so many columns have a kernel, and `count` rows of blocks are few.
  static bool takes(int row_size, int col_size, int columns, std::int64_t count);
  /// Stores `rows` in f32 or f64. Waits for the stream. Throws Error(resources). REQUIRES: takes().
  ColumnsProduct(const BlockRows& rows, ValueType type, int columns, Stream& stream);

  /// New values on the same pattern. Waits for the stream.
  void update(const BlockRows& rows, Stream& stream);
  /// Y = alpha·A·X + beta·Y in stream order. X and Y have `columns` values a row, and no gaps.
  void multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const;
  std::int64_t bytes() const { return stored_.bytes(); }

 private:
  ValueType type_;
  int row_size_, col_size_, columns_;
  bool wide_;  ///< a thread block has a row
  std::int64_t count_;
  StoredBlocks stored_;
};

}  // namespace shardmat::blocks
