#include "tools/bench/peer_pairs.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include "kernels/base/timer.h"

namespace shardmat::tools {
namespace {

constexpr double kConfidence = 0.9;
constexpr std::int64_t kMostProducts = 1'000'000;
constexpr int kMostAttempts = 3;

/// Seconds that all cores together were busy since the machine was started, by whatever ran, also in other virtual machines.
double busy_seconds() {
  std::ifstream file("/proc/stat");
  std::string word;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft_interrupts = 0, stolen = 0;
  file >> word >> user >> nice >> system >> idle >> waiting >> interrupts >> soft_interrupts >> stolen;
  return (user + nice + system + interrupts + soft_interrupts + stolen) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double wall_seconds() {
  static const Timer timer;
  return timer.seconds();
}

/// As many products as take `seconds`.
std::int64_t products_for(const TimedProducts& product, double seconds) {
  std::int64_t count = 1;
  for (;;) {
    const double took = product(count);
    if (took >= seconds || count >= kMostProducts) return count;
    const double wanted = took > 0 ? 1.2 * seconds / took : 10;
    count = std::min(kMostProducts,
                     static_cast<std::int64_t>(std::ceil(static_cast<double>(count) * std::clamp(wanted, 1.2, 10.0))));
  }
}

}  // namespace

MedianInterval median_interval(std::vector<double> figures) {
  std::sort(figures.begin(), figures.end());
  const auto count = static_cast<int>(figures.size());
  const auto at = [&](int i) { return figures[static_cast<std::size_t>(i)]; };
  MedianInterval result;
  result.median = (at((count - 1) / 2) + at(count / 2)) / 2;
  // Fewer than i + 1 of the figures lie below the true median with the probability of at most i heads in `count` throws.
  double probability = std::exp2(-count), tail = probability;  // of exactly, and of at most, `left` heads
  int left = 0;
  for (;; ++left) {
    const double next = probability * (count - left) / (left + 1);
    if (2 * (tail + next) > 1 - kConfidence || left + 1 > (count - 1) / 2) break;
    probability = next, tail += next;
  }
  result.low = at(left), result.high = at(count - 1 - left);
  result.coverage = std::max(0.0, 1 - 2 * tail);
  return result;
}

double median_of(std::vector<double> figures) {
  std::sort(figures.begin(), figures.end());
  return (figures[(figures.size() - 1) / 2] + figures[figures.size() / 2]) / 2;
}

void ForeignLoad::begin() { busy_ = busy_seconds(), own_ = own_seconds_(), wall_ = wall_seconds(); }

double ForeignLoad::cores() const {
  const double wall = wall_seconds() - wall_;
  return wall <= 0 ? 0 : std::max(0.0, (busy_seconds() - busy_ - (own_seconds_() - own_)) / wall);
}

std::vector<double> Pairs::ratios() const {
  std::vector<double> result;
  for (std::size_t i = 0; i < ours.size(); ++i) result.push_back(theirs[i] / ours[i]);
  return result;
}

Pairs measure_pairs(const TimedProducts& ours, const TimedProducts& theirs, const PairOptions& options, ForeignLoad& load) {
  const std::int64_t own_count = products_for(ours, options.seconds), their_count = products_for(theirs, options.seconds);
  Pairs result;
  for (int pair = 0; pair < options.pairs; ++pair) {
    load.begin();
    double own = 0, their = 0;
    if (pair % 2 == 0) own = ours(own_count), their = theirs(their_count);
    else their = theirs(their_count), own = ours(own_count);
    const double foreign = load.cores();
    const bool may_repeat = result.repeated < (kMostAttempts - 1) * options.pairs;
    if (options.most_foreign_cores > 0 && foreign > options.most_foreign_cores && may_repeat) {
      ++result.repeated, --pair;
      continue;
    }
    result.ours.push_back(own / static_cast<double>(own_count));
    result.theirs.push_back(their / static_cast<double>(their_count));
    result.foreign_cores += foreign / options.pairs;
  }
  return result;
}

}  // namespace shardmat::tools
