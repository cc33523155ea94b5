// Y of a product of batches with an epilogue, against sums in f64.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/batched/batched_spmm.h"
#include "tests/support/batch_zoo.h"

namespace shardmat::test {

template <class T>
class EpilogueCheck {
 public:
  /// `y` was `before`, and may be longer than its rows. An empty bias is none.
  EpilogueCheck(const Epilogue& epilogue, const std::vector<T>& bias, const Dense<T>& before, const std::vector<T>& y,
                ValueType type)
      : e_(epilogue), bias_(bias), before_(before), y_(y), rest_(y), roundoff_(unit_roundoff(type)) {}

  /// Entry (row, j) is act(alpha·sum + beta·before + bias), within what so many terms of together `absolute` may be off.
  testing::AssertionResult right(std::int64_t row, std::int64_t j, double sum, double absolute, double terms) {
    const double old = e_.beta == 0 ? 0 : e_.beta * before_.at(row, j);
    const double added = bias_.empty() ? 0 : static_cast<double>(bias_[static_cast<std::size_t>(j)]);
    double expected = e_.alpha * sum + old + added;
    if (e_.relu) expected = std::max(expected, 0.0);
    const double bound = 2 * roundoff_ * (terms * std::abs(e_.alpha) * absolute + 3 * (std::abs(old) + std::abs(added)));
    const auto place = static_cast<std::size_t>(row * before_.leading + j);
    rest_[place] = before_.entries[place];
    const auto found = static_cast<double>(y_[place]);
    if (std::abs(found - expected) <= bound) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "row " << row << ", column " << j << " is " << found << " and not " << expected
                                       << " within " << bound;
  }
  /// All entries that right() was not asked about are as they were.
  void expect_rest_untouched() const {
    if (rest_.empty()) return;
    EXPECT_EQ(std::memcmp(rest_.data(), before_.entries.data(), rest_.size() * sizeof(T)), 0) << "written between its rows";
  }

 private:
  const Epilogue& e_;
  const std::vector<T>& bias_;
  const Dense<T>& before_;
  const std::vector<T>& y_;
  std::vector<T> rest_;
  double roundoff_;
};

}  // namespace shardmat::test
