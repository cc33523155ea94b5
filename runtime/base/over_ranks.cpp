#include "runtime/base/over_ranks.h"

#include <algorithm>
#include <numeric>

namespace shardmat {

OverRanks over_ranks(double mine, Communicator& communicator) {
  const std::vector<double> all = communicator.all_gather(mine);
  const auto [min, max] = std::minmax_element(all.begin(), all.end());
  return {*min, std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size()), *max, all};
}

}  // namespace shardmat
