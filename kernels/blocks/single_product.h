// Products of a matrix of single entries of which a GPU has many rows, with values in f32 or f16 and vectors in f32.
// Internal to BlockProduct.
//
//   slice   32 rows as they come, or sorted by their length within windows where padding would take more; a lane has one
//   pair    two entries of each row of a slice, beside the one on the diagonal; rows that have fewer get zeros. The columns
//           of a pair are stored in one of three ways:
//             shared   one difference from the row for all rows (stencils): a row that lacks it gets a zero. Neighbours with
//                      the same differences share them, and two such slices are multiplied by one warp at once
//             narrow   the least column of the slice, and 16 bits for each row
//             wide     32 bits for each row
//
// A non-finite entry of x may spread to rows of a slice that do not have its column.
//
// In f16 a slice has a power of two as its scale, or each of its rows has one where their sizes are far apart. The entry on
// the diagonal stays in f32 and takes what rounding made of the others, so that the product with a given smooth vector is
// exact, as in half_product.h.
//
// Threads: as Plan.
#pragma once

#include <cstdint>

#include "kernels/base/device.h"
#include "kernels/base/types.h"
#include "kernels/blocks/block_rows.h"

namespace shardmat::blocks {

struct SmootherStep;

class SingleProduct {
 public:
  /// Whether it can store these rows: of single entries, and none very long.
  static bool takes(const BlockRows& rows, ValueType type, Stream& stream);

  /// `type`: f32, or f16 for a square matrix. `modes`: the smooth vector, double, one value a row; null: constants. Waits
  /// for the stream. REQUIRES: takes().
  SingleProduct(const BlockRows& rows, ValueType type, bool is_square, const Buffer* modes, Stream& stream);

  void update(const BlockRows& rows, Stream& stream);
  void multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const;
  void multiply(const void* d, const SmootherStep& step, Stream& stream) const;
  std::int64_t bytes() const;

 private:
  Buffer diagonals(const BlockRows& rows, Stream& stream) const;
  bool pays_to_sort(const BlockRows& rows, Stream& stream) const;
  void sort_rows(const BlockRows& rows, Stream& stream);
  void fill(const BlockRows& rows, const Buffer& diagonal, bool with_columns, Stream& stream);
  template <class End>
  void run(const void* x, const End& end, Stream& stream) const;

  ValueType type_;
  bool is_square_;
  std::int64_t count_, slices_;
  bool is_short_ = false;    ///< most rows have three pairs or fewer
  bool is_stencil_ = false;  ///< most slices share their columns with the one before
  Buffer modes_;
  Buffer slice_;   ///< its header
  Buffer order_;   ///< std::int32_t: the row of each lane; empty: as they come
  Buffer pair_;    ///< std::int64_t: the first pair of each slice, and the end
  Buffer unit_;    ///< std::int64_t: where its columns begin, in 8 bytes, and the end
  Buffer kind_;    ///< std::uint8_t: how it stores them
  Buffer column_;  ///< by slice: int2, one a pair; or the base and 16 bits; or 32 bits
  Buffer value_;   ///< by slice: pairs of float or __half, one pair after another
  Buffer own_;     ///< float: the entry on the diagonal; of square matrices
  Buffer scale_;   ///< float: of each row, where slices need it
};

}  // namespace shardmat::blocks
