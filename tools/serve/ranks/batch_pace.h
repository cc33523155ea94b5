// How long products of batches take: what each product costs, and what the work in it costs, as observed. Batches differ by
// orders of magnitude, so the time of the last product alone says nothing of the next one.
//
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "partition/batched/batch_shape.h"

namespace shardmat::serve {

/// Numbers that are read and written for a batch, about as its time: each nonzero once, and for each column of X; X and Y.
inline std::int64_t work_of(const BatchShape& shape) {
  return shape.nnz * (1 + shape.columns) + (shape.rows + shape.cols) * shape.columns;
}

class BatchPace {
 public:
  /// Of a product without work.
  double overhead() const { return overhead_; }
  double seconds_of(std::int64_t work) const { return seconds_of_unit_ * static_cast<double>(work); }

  /// A product with so much work took so many seconds. What is wrong with the expectation is laid to that part of it which
  /// is larger, so that small products tell what a product costs, and large ones what a unit of work does.
  void observe(std::int64_t work, double seconds) {
    constexpr double kShare = 0.25;
    const double of_work = seconds_of(work), all = overhead_ + of_work;
    bool& is_known = of_work > overhead_ ? is_unit_known_ : is_overhead_known_;
    // One that was held up counts no more than one of twice the time.
    const double wrong = is_known ? kShare * (std::min(seconds, 2 * all) - all) : seconds - all;
    const double part = of_work * of_work / (of_work * of_work + overhead_ * overhead_);
    is_known = true;
    overhead_ = std::max(overhead_ + wrong * (1 - part), kLeastOverhead);
    if (work > 0) seconds_of_unit_ = std::max(seconds_of_unit_ + wrong * part / static_cast<double>(work), kLeastUnit);
  }

 private:
  static constexpr double kLeastOverhead = 1e-6, kLeastUnit = 1e-13;
  double overhead_ = 1e-3, seconds_of_unit_ = 1e-9;  // until some were observed
  bool is_overhead_known_ = false, is_unit_known_ = false;
};

}  // namespace shardmat::serve
