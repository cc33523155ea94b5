// y = beta·y, for kernels that then add to y atomically.
#pragma once

#include <cstdint>

#include "kernels/base/device.h"

namespace shardmat::cuda {

/// Sets y[0 … n) to beta·y, and to 0 without reading it if beta is 0. T is float or double.
template <class T>
void scale(std::int64_t n, T beta, T* y, Stream& stream);

}  // namespace shardmat::cuda
