// Rows of CSR cut into ranges of about equal work for host threads, once for a plan, so that results do not depend on
// scheduling and a few long rows do not stall one thread more than they must.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/formats/csr.h"

namespace shardmat {

/// First rows of the ranges, and the number of rows; a row costs its nonzeros and one more.
inline std::vector<std::int64_t> even_row_starts(const CsrStorage& a) {
  const auto offset = [&](std::int64_t row) {
    return a.wide_offsets ? a.row_ptr.as<std::int64_t>()[row] : a.row_ptr.as<std::int32_t>()[row];
  };
  const std::int64_t work = a.nnz + a.rows,
                     ranges = std::clamp<std::int64_t>(work / 4096, 1, std::int64_t{8} * thread_count());
  std::vector<std::int64_t> starts{0};
  for (std::int64_t r = 1; r < ranges; ++r) {
    std::int64_t low = 0, high = a.rows;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (offset(middle) + middle < work / ranges * r) low = middle + 1;
      else high = middle;
    }
    starts.push_back(low);
  }
  starts.push_back(a.rows);
  return starts;
}

}  // namespace shardmat
