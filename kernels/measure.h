// How long a product takes: the one way in which the tuner and the benchmarks time a plan.
#pragma once

#include <functional>
#include <limits>

#include "kernels/base/device.h"
#include "kernels/plan.h"
#include "kernels/vector.h"

namespace shardmat {

/// Throws what is in a device's caches out, by reading a buffer several times their size: writing one would leave lines
/// that the next product has to write back.
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
  int repetitions = 9;                                                ///< of which the median is taken
  int warm_ups = 2;                                                   ///< products before that, at least one
  double warm_up_seconds = 0;                                         ///< more of them, for so long (kUsualWarmUp)
  double most_seconds = std::numeric_limits<double>::infinity();      ///< slow products are repeated less often, but 3 times
  double hopeless_seconds = std::numeric_limits<double>::infinity();  ///< of a slower product, only two repetitions
  CacheFlush* flush = nullptr;  ///< runs before each repetition, outside its time; null leaves the caches warm
};

struct Timing {
  double median = 0, min = 0, max = 0;  ///< seconds of one product
  int repetitions = 0;
};

/// Times what `product` puts on the stream, by events of it. Returns when all is done.
Timing time_work(const std::function<void()>& product, Stream& stream, const TimingOptions& options = {});

/// True if a work of so many seconds is faster than the one that led so far. Where the two are close, both are measured
/// again, in turn, as `work` and `leader` do, and their seconds become the lesser ones: the first to be measured may have
/// met a GPU that was still raising its clocks.
bool overtakes(double& seconds, const std::function<double()>& work, double& leading_seconds,
               const std::function<double()>& leader);

/// Times y = A x by events of the stream; x has cols and y rows entries on its device. Returns when all is done.
Timing time_product(const Plan& plan, const void* x, void* y, Stream& stream, const TimingOptions& options = {});

}  // namespace shardmat
