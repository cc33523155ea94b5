#include "tools/serve/words/utc.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <ctime>

namespace shardmat::serve {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string utc(double time) {
  const auto milliseconds = static_cast<long long>(std::floor(time * 1000));
  const std::time_t seconds = milliseconds / 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds), milliseconds % 1000);
}

}  // namespace shardmat::serve
