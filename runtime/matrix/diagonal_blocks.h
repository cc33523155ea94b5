#pragma once

#include <cstdint>

#include "kernels/base/device.h"
#include "kernels/base/types.h"

namespace shardmat {

/// Dense blocks around the diagonal, in device memory.
struct DiagonalBlocks {
  std::int64_t size = 0, count = 0;
  ValueType type = ValueType::f64;
  Buffer values;  ///< count · size · size
};

}  // namespace shardmat
