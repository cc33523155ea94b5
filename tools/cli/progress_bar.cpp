#include "tools/cli/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "tools/cli/environment.h"
#include "tools/cli/stop_signal.h"

namespace shardmat::tools {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kQuiet = std::chrono::milliseconds(500);
constexpr auto kBetweenDraws = std::chrono::milliseconds(100);
constexpr int kWidth = 30;

class Bar {
 public:
  void update(std::string_view phase, std::int64_t done, std::int64_t total) {
    const auto now = Clock::now();
    if (phase != phase_) {
      phase_ = phase;
      begun_ = now;
      drawn_ = {};
    }
    const bool complete = done >= total;
    if (now - begun_ < kQuiet || (!complete && now - drawn_ < kBetweenDraws) || (complete && drawn_ == Clock::time_point{}))
      return;
    drawn_ = now;
    const double fraction = total > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0) : 1;
    const double elapsed = std::chrono::duration<double>(now - begun_).count();
    const auto filled = static_cast<std::size_t>(fraction * kWidth);
    const std::string bar = std::string(filled, '#') + std::string(kWidth - filled, '.');
    const std::string left = complete || fraction <= 0 ? "" : ", " + human_seconds(elapsed / fraction - elapsed) + " left";
    print_news(fmt::format("\r\033[K{:<13} [{}] {:3.0f} %  {}{}{}", phase, bar, 100 * fraction, human_seconds(elapsed), left,
                           complete ? "\n" : ""));
  }

 private:
  std::string phase_;
  Clock::time_point begun_, drawn_;
};

bool is_drawn() {
  const std::string wish = environment("SHARDMAT_PROGRESS", "auto");
  if (wish != "auto" && wish != "on" && wish != "off")
    throw Error(ErrorKind::usage, fmt::format("SHARDMAT_PROGRESS={}: choose auto, on or off", wish));
  return wish != "off" && launch().rank == 0 && (wish == "on" || ::isatty(STDERR_FILENO) != 0);
}

}  // namespace

bool IterationLine::is_wanted() { return is_drawn(); }

void IterationLine::update(std::int64_t iteration, double residual) {
  const auto now = Clock::now();
  if (now - begun_ < kQuiet || now - drawn_ < kBetweenDraws) return;
  drawn_ = now;
  const double elapsed = std::chrono::duration<double>(now - begun_).count();
  print_news(fmt::format("\r\033[K{:<13} iteration {}, residual {:.3e}, {:.4g} iterations/s, {}", phase_,
                         human_count(iteration), residual, static_cast<double>(iteration) / elapsed,
                         human_seconds(elapsed)));
}

void IterationLine::end() {
  if (drawn_ != Clock::time_point{}) print_news("\n");
  drawn_ = {};
}

Progress make_progress_bar() {
  if (!is_drawn()) return {};
  return [bar = std::make_shared<Bar>()](std::string_view phase, std::int64_t done, std::int64_t total) {
    bar->update(phase, done, total);
  };
}

}  // namespace shardmat::tools
