// Cuts rows into ranges of about equal work for host threads. This is done once for a plan, so results do not depend on
// scheduling, and long rows are spread over the threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/base/parallel.h"

namespace shardmat {

/// First rows of the ranges, then the number of rows. work(i): the work of all rows before row i, in nonzeros or like units.
/// One range if it is not worth threads_for().
template <class Work>
std::vector<std::int64_t> even_starts(std::int64_t rows, const Work& work) {
  constexpr std::int64_t kLeastOfARange = 1 << 12, kLeastForSleepers = 1 << 20;
  const std::int64_t all = work(rows);
  const int threads = threads_wait_asleep() && all < kLeastForSleepers ? 1 : threads_for(all);
  const std::int64_t ranges =
      threads == 1 ? 1 : std::clamp<std::int64_t>(all / kLeastOfARange, 1, std::int64_t{8} * threads);
  std::vector<std::int64_t> starts{0};
  for (std::int64_t r = 1; r < ranges; ++r) {
    std::int64_t low = 0, high = rows;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (work(middle) < all / ranges * r) low = middle + 1;
      else high = middle;
    }
    starts.push_back(low);
  }
  starts.push_back(rows);
  return starts;
}

}  // namespace shardmat
