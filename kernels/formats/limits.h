// Size checks that formats make before they allocate.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "kernels/base/error.h"

namespace shardmat {

/// a·b for a, b ≥ 0, limited to 2^60, which is more than any memory; sums of a few such products stay below 2^63. For padded
/// sizes, which can be huge before they are refused.
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
