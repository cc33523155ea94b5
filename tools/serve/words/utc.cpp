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

std::optional<double> parse_utc(const std::string& text) {
  std::tm time{};
  const char* end = strptime(text.c_str(), text.size() == 10 ? "%Y-%m-%d" : "%Y-%m-%dT%H:%M:%SZ", &time);
  if (end == nullptr || *end != '\0' || (text.size() != 10 && text.size() != 20)) return std::nullopt;
  const std::tm given = time;
  const std::time_t seconds = timegm(&time);  // makes the 3rd of March of the 31st of February
  if (given.tm_mday != time.tm_mday || given.tm_mon != time.tm_mon) return std::nullopt;
  return static_cast<double>(seconds);
}

}  // namespace shardmat::serve
