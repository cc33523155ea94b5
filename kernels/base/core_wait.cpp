#include "kernels/base/core_wait.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace shardmat {
namespace {

std::function<double()>& pretended() {
  static std::function<double()> seconds;
  return seconds;
}

}  // namespace

void pretend_core_wait(std::function<double()> seconds) { pretended() = std::move(seconds); }

double core_wait_seconds() {
  if (pretended()) return pretended()();
  double waited = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator task("/proc/self/task", error), end; !error && task != end;
       task.increment(error)) {
    std::ifstream file(task->path() / "schedstat");
    double ran = 0, ready = 0;  // nanoseconds
    if (file >> ran >> ready) waited += ready;
  }
  return 1e-9 * waited;
}

double CoreWait::share(int threads) const {
  const double seconds = timer_.seconds() * std::max(1, threads);
  return seconds > 0 ? std::clamp((core_wait_seconds() - before_) / seconds, 0.0, 1.0) : 0;
}

}  // namespace shardmat
