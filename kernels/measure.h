// Times a product. The tuner and the benchmarks use the same functions.
#pragma once

#include <functional>
#include <limits>

#include "kernels/base/device.h"
#include "kernels/plan.h"
#include "kernels/vector.h"

namespace shardmat {

/// Flushes the caches of a device by reading a buffer several times their size. (Writing a buffer would leave dirty lines,
/// which the next product would have to write back.)
class CacheFlush {
 public:
  explicit CacheFlush(Device device);
  /// In stream order.
  void run(Stream& stream);

 private:
  Buffer memory_, result_;
  DotProducts dots_;
};

constexpr double kUsualWarmUp = 0.005;  ///< seconds in which an idle GPU mostly reaches its clocks

struct TimingOptions {
  int repetitions = 9;                                            ///< timed products; the median counts
  int warm_ups = 2;                                               ///< untimed products before, at least one
  double warm_up_seconds = 0;                                     ///< least duration of the warm-up (kUsualWarmUp)
  double most_seconds = std::numeric_limits<double>::infinity();  ///< of all repetitions; at least 3 are made
  /// The fastest product of two or more warm-ups tells a slower one, which is not repeated. After a single warm-up, in
  /// which a GPU may have loaded the kernel, it gets two repetitions.
  double hopeless_seconds = std::numeric_limits<double>::infinity();
  CacheFlush* flush = nullptr;  ///< runs before each repetition, not timed; null: caches stay warm
};

struct Timing {
  double median = 0, min = 0, max = 0;  ///< seconds of one product
  int repetitions = 0;                  ///< 0: it was hopeless, and these are the seconds of the fastest warm-up
};

/// The seconds by which candidates are compared: on a GPU the median, on the host the minimum, since other programs on the
/// machine only add to the time.
inline double seconds_to_compare(const Timing& timing, Backend backend) {
  return backend == Backend::host ? timing.min : timing.median;
}

/// Times the work that `product` enqueues on the stream, by events. Returns when all work is done.
Timing time_work(const std::function<void()>& product, Stream& stream, const TimingOptions& options = {});

/// True if the work that took `seconds` is faster than the leader, the fastest work so far. If it was, measures both again
/// in turn, by work() and leader(), and keeps the smaller seconds of each: the first measurement may have seen a GPU that
/// was still raising its clocks. On the host, where other programs come and go, work() must win most of some pairs if the
/// two are close, and the seconds become medians over the pairs.
bool overtakes(double& seconds, const std::function<double()>& work, double& leading_seconds,
               const std::function<double()>& leader, Backend backend);

/// Times y = A·x by events of the stream. x has cols entries and y has rows entries on its device. Returns when all work is
/// done.
Timing time_product(const Plan& plan, const void* x, void* y, Stream& stream, const TimingOptions& options = {});

}  // namespace shardmat
