// How long this process's threads waited for a core because other threads of the machine had it.
#pragma once

#include <functional>

#include "kernels/base/timer.h"

namespace shardmat {

/// Seconds that the threads of this process were ready to run but had no core, since they began; 0 where Linux does not tell.
double core_wait_seconds();
/// For tests: what core_wait_seconds() tells from now on; empty: what Linux tells. REQUIRES: no other thread asks.
void pretend_core_wait(std::function<double()> seconds);

/// Tells of the time since it was made.
class CoreWait {
 public:
  /// Of one of `threads` threads that work together, the share of the time in which it waited for a core, 0 to 1. A team of
  /// threads waits at each barrier for the one that has no core.
  double share(int threads) const;
  double seconds() const { return timer_.seconds(); }

 private:
  Timer timer_;
  double before_ = core_wait_seconds();
};

/// From this share on, times of several threads say nothing about the kernels that were timed.
constexpr double kBusyShare = 0.25;

}  // namespace shardmat
