// Products of a matrix of dense blocks of which a GPU has many rows: a lane has a row of blocks, and the rows of a warp lie
// side by side, so that values stream at the copy rate. Internal to BlockProduct.
//
//   slice   32 rows of blocks, sorted by their length within windows; slot s of a slice has block s of each of its rows
//   values[slot][entry of the block][row], columns[slot][row]
//
// Threads: as Plan.
#pragma once

#include <cstdint>

#include "kernels/base/device.h"
#include "kernels/base/types.h"
#include "kernels/blocks/block_rows.h"

namespace shardmat::blocks {

struct SmootherStep;

/// std::int32_t: all rows of blocks, sorted by their length within windows, the longest first.
Buffer rows_by_length(const BlockRows& rows, Stream& stream);

class SlicedProduct {
 public:
  /// Whether blocks of these sizes have a kernel.
  static bool takes(int row_size, int col_size);
  /// Stores `rows` in f32 or f64. Waits for the stream.
  SlicedProduct(const BlockRows& rows, ValueType type, Stream& stream);

  void update(const BlockRows& rows, Stream& stream);
  void multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const;
  void multiply(const void* d, const SmootherStep& step, Stream& stream) const;
  std::int64_t bytes() const;

 private:
  void fill(const BlockRows& rows, bool with_columns, Stream& stream);

  ValueType type_;
  int row_size_, col_size_;
  std::int64_t count_, slices_;
  Buffer start_;   ///< std::int64_t: the first slot of each slice, and the end
  Buffer order_;   ///< std::int32_t: the row of each lane
  Buffer length_;  ///< std::int32_t: its blocks
  Buffer column_, value_;
};

}  // namespace shardmat::blocks
