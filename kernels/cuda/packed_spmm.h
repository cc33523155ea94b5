// Products of packed rows with several right-hand sides.
#pragma once

#include "kernels/cuda/dense_rows.h"
#include "kernels/formats/packed.h"

namespace shardmat::packed {

/// How the work is spread: lanes for each row of X, stretches of columns for each lane, slices for each block.
struct SpmmShape {
  int lanes, passes, slices;

  /// True if kernels for this shape exist.
  constexpr bool exists() const {
    return (passes == 1 && (lanes == 1 || lanes == 2 || lanes == 4 || lanes == 8)) ||
           (passes == 2 && (lanes == 2 || lanes == 4 || lanes == 8));
  }
};

/// Y = alpha·A·X + beta·Y in stream order, for T = float and double and S the Shape of `a`. REQUIRES: shape.exists() and
/// shape.slices > 0; `a` has values of type T.
template <class T, class S>
void multiply_many(const PackedStorage& a, const dense::Rows<T>& v, const SpmmShape& shape, Stream& on);

}  // namespace shardmat::packed
