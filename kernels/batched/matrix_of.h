// Which matrix of a batch a row or an entry belongs to.
#pragma once

#include <cstdint>

namespace shardmat::batched {

/// The last of `count` matrices that begins at or before `place`: those without anything begin where the next one does.
#ifdef __CUDACC__
__host__ __device__
#endif
    inline std::int32_t
    matrix_of(std::int64_t place, const std::int32_t* first, std::int32_t count) {
  std::int32_t matrix = 0, beyond = count;
  while (beyond - matrix > 1) {
    const std::int32_t middle = matrix + (beyond - matrix) / 2;
    if (first[middle] <= place) matrix = middle;
    else beyond = middle;
  }
  return matrix;
}

}  // namespace shardmat::batched
