// What multigrid tells of its levels.
//
// Threads: values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardmat {

struct MultigridReport {
  std::vector<std::int64_t> unknowns;  ///< of each level
  double operator_complexity = 1;      ///< nonzeros of all levels over those of the first
  std::string modes;                   ///< NearNullSpace::why
  double seconds = 0;                  ///< of the set-up
};

}  // namespace shardmat
