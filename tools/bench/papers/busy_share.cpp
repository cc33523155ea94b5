#include "tools/bench/papers/busy_share.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace shardmat::tools {

double busy_share(const std::vector<std::vector<double>>& launches, int multiprocessors) {
  double busy = 0, whole = 0;
  for (const std::vector<double>& blocks : launches) {
    std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
    for (int i = 0; i < multiprocessors; ++i) free_at.push(0);
    double last = 0;
    for (const double cost : blocks) {
      const double end = free_at.top() + cost;
      free_at.pop();
      free_at.push(end);
      last = std::max(last, end);
      busy += cost;
    }
    whole += last;
  }
  return whole == 0 ? 0 : busy / (whole * multiprocessors);
}

}  // namespace shardmat::tools
