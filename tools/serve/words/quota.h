// How much of something a client may take a second. It may take what a second allows at once.
//
// Threads: one at a time.
#pragma once

#include <algorithm>

namespace shardmat::serve {

class Quota {
 public:
  /// `rate` a second; 0: without limit.
  explicit Quota(double rate = 0) : rate_(rate), left_(most()) {}

  double rate() const { return rate_; }
  /// Seconds until `amount` may be taken; 0: now.
  double wait(double amount, double now) {
    if (rate_ == 0) return 0;
    left_ = std::min(most(), left_ + rate_ * std::max(0.0, now - filled_));
    filled_ = now;
    return std::max(0.0, (std::min(amount, most()) - left_) / rate_);
  }
  /// More than fits may be taken at once, too; the next one then waits longer. REQUIRES: wait() returned 0.
  void take(double amount) {
    if (rate_ > 0) left_ -= amount;
  }

 private:
  double most() const { return std::max(rate_, 1.0); }

  double rate_, left_, filled_ = 0;
};

}  // namespace shardmat::serve
