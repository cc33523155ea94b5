// Products of a square matrix of dense blocks whose values are stored in f16, with vectors in f32. Internal to BlockProduct.
// Single entries have a product of their own (single_product.h).
//
// A row of blocks has a power of two as its scale. Its block on the diagonal stays in f32 and takes what rounding made of
// the others, so that the product with given smooth vectors is exact: it is A times smooth vectors that rounding would
// spoil. The layouts are those of the products in f32 (block_product.h, sliced_product.h), with two values side by side:
//
//   a lane a row of blocks    values[pair of blocks][entry of the block][row], two blocks in each; columns as differences
//                             from the row, where all rows of a slice share them or 16 bits hold them
//   a team a row of blocks    values[row of the blocks][pair of entries], two entries of that row in each
//
// Threads: as Plan.
#pragma once

#include <cstdint>

#include "kernels/base/device.h"
#include "kernels/blocks/block_rows.h"

namespace shardmat::blocks {

struct SmootherStep;

class HalfProduct {
 public:
  /// Whether blocks of these sizes have a kernel.
  static bool takes(int row_size, int col_size);

  /// `modes`: the smooth vectors, row_size × row_size values in double a node; null: the identity in each, which stands for
  /// constants. `lanes`: a lane has a row of blocks; `team`: else so many lanes do. Waits for the stream.
  HalfProduct(const BlockRows& rows, const Buffer* modes, bool lanes, int team, Stream& stream);

  void update(const BlockRows& rows, Stream& stream);
  void multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const;
  void multiply(const void* d, const SmootherStep& step, Stream& stream) const;
  std::int64_t bytes() const;

 private:
  int size_, team_;
  bool lanes_;
  std::int64_t count_;
  Buffer modes_;
  Buffer scale_, own_;  ///< float: a value a row of blocks, and its block on the diagonal
  Buffer start_;        ///< std::int64_t: the first pair of each slice or row, and the end
  Buffer order_;        ///< std::int32_t: the row of each lane
  Buffer length_;       ///< std::int32_t: blocks of a row beside the diagonal
  Buffer first_;        ///< std::int64_t: where the columns of each slice or row begin, and the end
  Buffer column_, value_;
};

}  // namespace shardmat::blocks
