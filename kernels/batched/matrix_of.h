// Finds the matrix of a batch to which a row or an entry belongs.
#pragma once

#include <cstdint>

#include "kernels/base/host_device.h"

namespace shardmat::batched {

/// The last of `count` matrices that begins at or before `place`. (An empty matrix begins where the next matrix begins.)
SHARDMAT_HOST_DEVICE inline std::int32_t matrix_of(std::int64_t place, const std::int32_t* first, std::int32_t count) {
  std::int32_t matrix = 0, beyond = count;
  while (beyond - matrix > 1) {
    const std::int32_t middle = matrix + (beyond - matrix) / 2;
    if (first[middle] <= place) matrix = middle;
    else beyond = middle;
  }
  return matrix;
}

}  // namespace shardmat::batched
