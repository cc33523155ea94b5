// How long the threads of this process waited for a core that other threads of the machine used.
#pragma once

#include <functional>

#include "kernels/base/timer.h"

namespace shardmat {

/// Seconds that the threads of this process have waited for a core since they began; 0 where Linux does not count them.
double core_wait_seconds();
/// For tests: core_wait_seconds() returns `seconds()` from now on, or again what Linux counts if `seconds` is empty.
/// REQUIRES: no other thread calls core_wait_seconds().
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
