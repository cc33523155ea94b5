// One figure of each rank, as what there is to say over all of them.
#pragma once

#include <vector>

#include "comm/communicator.h"

namespace shardmat {

struct OverRanks {
  double min = 0, mean = 0, max = 0;
  std::vector<double> each;  ///< by rank
};

/// Collective; the same on all ranks.
OverRanks over_ranks(double mine, Communicator& communicator);

}  // namespace shardmat
