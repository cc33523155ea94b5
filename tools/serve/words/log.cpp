#include "tools/serve/words/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <mutex>

#include "tools/serve/words/log_writer.h"
#include "tools/serve/words/utc.h"

namespace shardmat::serve {
namespace {

constexpr double kEndSeconds = 1;
constexpr std::size_t kMostKept = 200;

/// The newest lines. Never destroyed, as writer().
struct Kept {
  std::mutex mutex;
  std::deque<LoggedLine> lines;
  std::uint64_t last = 0;
};

Kept& kept() {
  static Kept* const only = new Kept;
  return *only;
}

std::string with_time(const std::string& text) {
  return fmt::format("{} shardmat-serve: {}\n", utc(seconds_since_1970()), text);
}

/// It is never destroyed: its thread may be used until the process has ended.
LogWriter& writer() {
  static LogWriter* const only = [] {
    std::atexit([] { writer().flush(kEndSeconds); });
    return new LogWriter(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3), {[](std::uint64_t lost) {
                           return with_time(
                               fmt::format("{} lines of this log were lost: nobody read them, or they could "
                                           "not be written",
                                           lost));
                         }});
  }();
  return *only;
}

}  // namespace

void log_line(std::string text) {
  // Clients choose some of the words; they cannot make lines of their own.
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  {
    Kept& all = kept();
    const std::lock_guard lock(all.mutex);
    all.lines.push_back({++all.last, utc(seconds_since_1970()) + " " + text});
    if (all.lines.size() > kMostKept) all.lines.pop_front();
  }
  writer().write(with_time(text));
}

std::vector<LoggedLine> newest_log_lines(std::uint64_t after) {
  Kept& all = kept();
  const std::lock_guard lock(all.mutex);
  const auto first =
      std::find_if(all.lines.begin(), all.lines.end(), [&](const LoggedLine& line) { return line.number > after; });
  return {first, all.lines.end()};
}

void error_line(const std::string& text) { writer().write(fmt::format("shardmat: {}\n", text)); }

std::uint64_t lost_log_lines() { return writer().dropped(); }

}  // namespace shardmat::serve
