// Cuts CSR rows into ranges of about equal work for host threads. This is done once for a plan, so results do not depend on
// scheduling, and long rows are spread over the threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/formats/csr.h"

namespace shardmat {

/// First rows of the ranges, then the number of rows. The work of a row is its number of nonzeros + 1.
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
