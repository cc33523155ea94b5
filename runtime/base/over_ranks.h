// Statistics of one figure over all ranks.
#pragma once

#include <vector>

#include "comm/communicator.h"

namespace shardmat {

struct OverRanks {
  double min = 0, mean = 0, max = 0;
  std::vector<double> each;  ///< one value for each rank
};

/// Collective; the same result on all ranks.
OverRanks over_ranks(double mine, Communicator& communicator);

}  // namespace shardmat
