// When lost ranks are started again, and when the service gives up. It takes the time of day as an argument.
//
// Threads: one at a time.
#pragma once

#include <deque>
#include <optional>

namespace shardmat::serve {

class RestartPolicy {
 public:
  /// At most `most` restarts in ten minutes. The first one comes at once, the second after `delay` seconds, each further one
  /// after twice the time of the one before, at most 30 s.
  RestartPolicy(int most, double delay) : most_(most), delay_(delay) {}

  /// The ranks were lost, at the time `now`: seconds until they should be started again, or nothing if there were too many
  /// restarts.
  std::optional<double> lost(double now);
  /// The ranks are ready. After ten seconds without a loss all is forgotten.
  void ready(double now) { ready_since_ = now; }

  int restarts() const { return static_cast<int>(times_.size()); }

 private:
  int most_;
  double delay_;
  std::optional<double> ready_since_;
  std::deque<double> times_;  ///< of the restarts that count
};

}  // namespace shardmat::serve
