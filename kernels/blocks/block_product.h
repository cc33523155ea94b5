// Products of a matrix of dense blocks with one vector on a GPU, alone or with a step of a smoother behind them.
//
//   row i of blocks has R rows of C·n entries, which lie one after another: values[r][k][c] of its n blocks k
//
// Where there are many rows of blocks, a lane has one (sliced_product.h, single_product.h). Else a team of 4, 8, 16 or 32
// lanes has a row of blocks, or four warps do where there are few; each entry of x is read once for R rows. So rows of few
// unknowns stream as long ones do, and a level of some hundred nodes is done in microseconds.
//
// Threads: as Plan.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/base/device.h"
#include "kernels/base/types.h"
#include "kernels/blocks/block_rows.h"
#include "kernels/blocks/half_product.h"
#include "kernels/blocks/single_product.h"
#include "kernels/blocks/sliced_product.h"
#include "kernels/blocks/stored_blocks.h"

namespace shardmat::blocks {

/// A step of a smoother with the inverses M of the blocks on A's diagonal: r = r − A·d, then e = a·M·r + b·d, and x = x + e,
/// or x + d + e if x does not have d yet. All vectors are of the product's type, d is its input.
struct SmootherStep {
  const void* inverse;  ///< row-major blocks
  void *r, *x, *e;
  double a, b;
  bool x_lacks_d;
};

class BlockProduct {
 public:
  /// Stores `rows` in f32 or f64, or in f16 for vectors in f32: so that the product with `modes` stays exact, row_size ×
  /// row_size values in double a node, or with constants if that is null. Blocks that have no kernel for f16 are stored in
  /// f32. is_square: column i belongs to the node of row i. Waits for the stream. Throws Error(resources). REQUIRES: in f16,
  /// the matrix is square.
  BlockProduct(const BlockRows& rows, ValueType type, bool is_square, Stream& stream, const Buffer* modes = nullptr);

  /// New values on the same pattern. Waits for the stream.
  void update(const BlockRows& rows, Stream& stream);
  /// y = alpha·A·x + beta·y in stream order, as Plan::multiply().
  void multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const;
  /// REQUIRES: A is square; no two of d and the vectors of `step` overlap.
  void multiply(const void* d, const SmootherStep& step, Stream& stream) const;

  std::int64_t bytes() const;
  std::int64_t rows() const { return count_ * row_size_; }

 private:
  ValueType type_;
  int row_size_, col_size_, team_;
  std::int64_t count_;
  // With one of these, stored_ is empty.
  std::optional<SingleProduct> single_;
  std::optional<HalfProduct> half_;
  std::optional<SlicedProduct> sliced_;
  StoredBlocks stored_;
};

}  // namespace shardmat::blocks
