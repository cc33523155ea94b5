// Times that a report keeps, so that reports can be compared with intervals (commands/compare.cpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace shardmat::tools {

constexpr std::size_t kMostSamples = 200;

/// All of them, or kMostSamples that are evenly spaced.
inline std::vector<double> kept_samples(const std::vector<double>& all) {
  if (all.size() <= kMostSamples) return all;
  std::vector<double> kept;
  for (std::size_t i = 0; i < kMostSamples; ++i) kept.push_back(all[i * all.size() / kMostSamples]);
  return kept;
}

/// The median as all reports take it: the upper one of two in the middle.
inline double median_of_samples(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace shardmat::tools
