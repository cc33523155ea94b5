#include "tools/serve/ranks/restart_policy.h"

#include <algorithm>
#include <cmath>

namespace shardmat::serve {
namespace {

constexpr double kWindow = 600, kForget = 10, kLongestDelay = 30;

}  // namespace

std::optional<double> RestartPolicy::lost(double now) {
  if (ready_since_ && now - *ready_since_ >= kForget) times_.clear();
  ready_since_.reset();
  while (!times_.empty() && now - times_.front() > kWindow) times_.pop_front();
  if (restarts() >= most_) return std::nullopt;
  const double delay = times_.empty() ? 0 : std::min(kLongestDelay, delay_ * std::ldexp(1, restarts() - 1));
  times_.push_back(now);
  return delay;
}

}  // namespace shardmat::serve
