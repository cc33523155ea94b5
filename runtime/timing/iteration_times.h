// What iterations do, and what is measured of them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/base/over_ranks.h"

namespace shardmat {

enum class Mode {
  repeat,  ///< the same product y = αAx + βy in every iteration
  dots,  ///< the product, then xᵀy, then yᵀy, each summed over the ranks: a step of conjugate gradients without its vector
         ///< updates; square matrices only
  power,  ///< x ← y / ‖y‖₂ between products; square matrices only
};

std::string_view name(Mode mode);

/// Seconds of one iteration. The time of an iteration is the time of its slowest rank.
struct IterationTimes {
  std::int64_t iterations = 0;
  std::int64_t together = 1;  ///< iterations that were timed together; each time is their mean
  double median = 0, min = 0, max = 0, mean = 0;
  OverRanks of_ranks;           ///< each rank's own median; the difference of max and mean is lost by imbalance
  std::vector<double> samples;  ///< the time of each iteration, in the order in which they came
};

/// Results of the modes dots and power; zeros in other modes.
struct IterationEstimate {
  double xy = 0, yy = 0;  ///< dots: xᵀy and yᵀy
  double eigenvalue = 0;  ///< power: Rayleigh quotient xᵀAx / xᵀx of the last x
  double residual = 0;    ///< power: ‖Ax - λx‖₂ / |λ| of the last x, infinite if λ is 0 and Ax is not
};

}  // namespace shardmat
