// Multiplies a matrix by a number. The gaps between its rows or columns stay as they are.
#pragma once

#include "kernels/base/dense.h"
#include "kernels/base/device.h"

namespace shardmat {

/// Y = factor·Y in stream order; with factor = 0, Y is only written. Takes no memory and does not wait. REQUIRES: f64 or f32
/// in memory of the stream's device.
void scale_matrix(double factor, const Dense& y, Stream& stream);

}  // namespace shardmat
