// What formats check before they allocate anything.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "kernels/base/error.h"

namespace shardmat {

/// a·b for a, b ≥ 0, at most 2^60: more than any memory, and sums of a few stay below 2^63. A padded size can be anything
/// before it is refused.
inline std::int64_t capped_product(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) || product > kMost ? kMost : product;
}

/// Throws Error(resources) if row numbers do not fit 32 bits.
inline void require_int32_rows(std::int64_t rows, const std::string& format) {
  if (rows > std::numeric_limits<std::int32_t>::max())
    throw Error(ErrorKind::resources, "format " + format + " numbers rows with 32 bits, and this part of the matrix has " +
                                          std::to_string(rows) + " rows; use more ranks or another kernel");
}

}  // namespace shardmat
