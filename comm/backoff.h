// How to poll without hurting others: spin for latency, then give the core away, then sleep.
#pragma once

#include <sched.h>
#include <time.h>

#include <chrono>

namespace shardmat {

/// Call pause() between two polls. Open MPI moves data only inside its calls, so the sleeps begin late and
/// stay short: a long transfer must not starve, while a rank that waits for a slow one must not hold a core
/// that the slow one needs.
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
