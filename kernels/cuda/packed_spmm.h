// The products of packed rows with many right-hand sides, one object file a value type.
#pragma once

#include "kernels/cuda/dense_rows.h"
#include "kernels/formats/packed.h"

namespace shardmat::packed {

/// How the work is spread: lanes a row of X, stretches of columns a lane, slices a block.
struct SpmmShape {
  int lanes, passes, slices;

  /// True if there are kernels for it.
  constexpr bool exists() const {
    return (passes == 1 && (lanes == 1 || lanes == 2 || lanes == 4 || lanes == 8)) ||
           (passes == 2 && (lanes == 2 || lanes == 4 || lanes == 8));
  }
};

/// y = alpha·A·X + beta·Y on the stream, for T = float and double. REQUIRES: shape.exists() and shape.slices > 0; `a` holds
/// values of the type T.
template <class T>
void multiply_many(const PackedStorage& a, const dense::Rows<T>& v, const SpmmShape& shape, Stream& on);

}  // namespace shardmat::packed
