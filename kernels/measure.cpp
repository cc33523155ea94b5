#include "kernels/measure.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "kernels/base/timer.h"

namespace shardmat {
namespace {

constexpr int kLeastRepetitions = 3, kHopelessRepetitions = 2;
constexpr double kCloseOnHost = 0.5;  // a lead or a lag; other programs may have slowed one of the two
constexpr double kLead = 0.005;       // by which the confirmed one has to be faster: the noise of the median
constexpr double kLeadOnHost = 0.03;  // the same in most of kPairs pairs
constexpr int kPairs = 5;

/// Four times the largest L2 of a GPU. On the host twice the last-level cache, if the system tells it, within bounds: a
/// virtual machine may see that of a whole socket, of which it has a part.
std::size_t flush_bytes(Device device) {
  constexpr long kGpu = 1L << 28, kLeast = 1L << 25, kMost = 1L << 27;
  return static_cast<std::size_t>(
      device.backend == Backend::cuda ? kGpu : std::clamp(2 * ::sysconf(_SC_LEVEL3_CACHE_SIZE), kLeast, kMost));
}

double median(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

/// Other programs slow a host down for longer than one measurement takes, so that the two are compared pair by pair. The
/// seconds become the medians over the pairs.
bool overtakes_on_host(double& seconds, const std::function<double()>& work, double& leading_seconds,
                       const std::function<double()>& leader) {
  if (seconds >= leading_seconds * (1 + kCloseOnHost)) return false;
  if (seconds <= leading_seconds * (1 - kCloseOnHost)) return true;
  int leads = 0;
  std::vector<double> its, leaders;
  for (int pair = 0; pair < kPairs; ++pair) {
    if (pair % 2 == 0) leaders.push_back(leader()), its.push_back(work());
    else its.push_back(work()), leaders.push_back(leader());
    leads += its.back() < (1 - kLeadOnHost) * leaders.back();
  }
  seconds = median(its), leading_seconds = median(leaders);
  return 2 * leads > kPairs;
}

}  // namespace

CacheFlush::CacheFlush(Device device)
    : memory_(device, flush_bytes(device)), result_(device, 2 * sizeof(double)), dots_(device) {
  Stream stream(device);
  fill_bytes(memory_.data(), 0, memory_.bytes(), stream);
  stream.synchronize();
}

void CacheFlush::run(Stream& stream) {
  const auto count = static_cast<std::int64_t>(memory_.bytes() / sizeof(double));
  dots_.compute(ValueType::f64, count, memory_.data(), memory_.data(), result_.as<double>(), stream);
}

Timing time_work(const std::function<void()>& product, Stream& stream, const TimingOptions& options) {
  Event start(stream.device()), end(stream.device());
  const Timer timer;
  double once = std::numeric_limits<double>::infinity();  // the fastest of the warm-up
  int done = 0;
  for (; done < std::max(1, options.warm_ups) || timer.seconds() < options.warm_up_seconds; ++done) {
    start.record(stream);
    product();
    end.record(stream);
    stream.synchronize();
    once = std::min(once, end.seconds_since(start));
  }
  Timing timing{once, once, once, 0};
  const bool hopeless = once > options.hopeless_seconds;
  if (hopeless && done > 1) return timing;
  const double affordable =
      hopeless ? kHopelessRepetitions : std::max<double>(kLeastRepetitions, options.most_seconds / once);
  timing.repetitions = affordable < options.repetitions ? static_cast<int>(affordable) : options.repetitions;

  // All repetitions are put into the stream before the first is waited for: the GPU never waits for a launch.
  std::vector<Event> starts, ends;
  for (int repetition = 0; repetition < timing.repetitions; ++repetition) {
    if (options.flush != nullptr) options.flush->run(stream);
    starts.emplace_back(stream.device()).record(stream);
    product();
    ends.emplace_back(stream.device()).record(stream);
  }
  stream.synchronize();
  std::vector<double> seconds;
  for (std::size_t i = 0; i < starts.size(); ++i) seconds.push_back(ends[i].seconds_since(starts[i]));
  std::sort(seconds.begin(), seconds.end());
  timing.median = seconds[seconds.size() / 2];
  timing.min = seconds.front();
  timing.max = seconds.back();
  return timing;
}

bool overtakes(double& seconds, const std::function<double()>& work, double& leading_seconds,
               const std::function<double()>& leader, Backend backend) {
  if (backend == Backend::host) return overtakes_on_host(seconds, work, leading_seconds, leader);
  if (seconds >= leading_seconds) return false;
  leading_seconds = std::min(leading_seconds, leader());
  seconds = std::min(seconds, work());
  return seconds < (1 - kLead) * leading_seconds;
}

Timing time_product(const Plan& plan, const void* x, void* y, Stream& stream, const TimingOptions& options) {
  return time_work([&] { plan.multiply(1, x, 0, y, stream); }, stream, options);
}

}  // namespace shardmat
