// Polling that leaves the core to other work: spins at first (low latency), then yields the core, then sleeps.
#pragma once

#include <sched.h>
#include <time.h>

#include <chrono>

namespace shardmat {

/// Call pause() between two polls. Open MPI moves data only inside its calls, so sleeps begin late and stay short: a long
/// transfer must not starve. But a rank that waits for a slow rank must not hold a core that the slow rank needs.
class Backoff {
 public:
  using Clock = std::chrono::steady_clock;

  void pause() {
    if (++polls_ < kSpins) return;
    if (Clock::now() - start_ < kYieldTime) {
      sched_yield();
      return;
    }
    const timespec nap{0, 50'000};
    nanosleep(&nap, nullptr);
  }
  /// Seconds since this object was made.
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  static constexpr int kSpins = 100;
  static constexpr std::chrono::milliseconds kYieldTime{250};
  Clock::time_point start_ = Clock::now();
  int polls_ = 0;
};

}  // namespace shardmat
