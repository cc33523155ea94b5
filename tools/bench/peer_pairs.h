// Times two products in turn, ours and a peer's, and says how sure the ratio of their times is. Knows neither kernels nor
// processes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace shardmat::tools {

/// The median of some figures with an interval that covers the true median with a given probability, whatever their
/// distribution is: order statistics, e.g. David and Nagaraja, "Order Statistics", 7.1.
struct MedianInterval {
  double median = 0, low = 0, high = 0;
  double coverage = 0;  ///< probability that the interval covers the true median
};

/// The narrowest such interval of at least 90 %; below 5 figures the widest, whose coverage is less. REQUIRES: at least one.
MedianInterval median_interval(std::vector<double> figures);

/// CPU time that other programs take, in all cores together.
class ForeignLoad {
 public:
  /// `own_seconds`: CPU time so far of all processes that do not count as foreign.
  explicit ForeignLoad(std::function<double()> own_seconds) : own_seconds_(std::move(own_seconds)) { begin(); }

  void begin();
  /// Cores that other programs kept busy since begin(). /proc/stat counts hundredths of a second: short times tell nothing.
  double cores() const;

 private:
  std::function<double()> own_seconds_;
  double busy_ = 0, own_ = 0, wall_ = 0;
};

/// Seconds of so many products, after one that is not timed.
using TimedProducts = std::function<double(std::int64_t products)>;

struct PairOptions {
  int pairs = 21;
  double seconds = 0.01;          ///< least time of one measurement: as many products as fill it
  double most_foreign_cores = 0;  ///< a pair with more foreign load is measured again; 0: none is
};

/// Times of one product, pair by pair.
struct Pairs {
  std::vector<double> ours, theirs;  ///< seconds
  int repeated = 0;                  ///< pairs that were measured again because other programs ran
  double foreign_cores = 0;          ///< mean over the pairs that count

  /// Their time over ours: above 1, ours is faster.
  std::vector<double> ratios() const;
};

/// Measures pair after pair; who goes first changes with each pair. At most three times as many pairs as asked for are
/// measured: if other programs run all the time, the last ones count, and foreign_cores tells.
Pairs measure_pairs(const TimedProducts& ours, const TimedProducts& theirs, const PairOptions& options, ForeignLoad& load);

/// Median of some figures. REQUIRES: at least one.
double median_of(std::vector<double> figures);

}  // namespace shardmat::tools
