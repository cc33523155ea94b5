// Times that a report keeps, so that reports can be compared with intervals (commands/compare.cpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardmat::tools {

constexpr std::size_t kMostSamples = 200;

/// All of them, or kMostSamples that are evenly spaced. Of `together` that were timed as one, and are the same, one counts.
inline std::vector<double> kept_samples(const std::vector<double>& all, std::int64_t together = 1) {
  std::vector<double> single, kept;
  for (std::size_t i = 0; i < all.size(); i += static_cast<std::size_t>(std::max<std::int64_t>(together, 1)))
    single.push_back(all[i]);
  if (single.size() <= kMostSamples) return single;
  for (std::size_t i = 0; i < kMostSamples; ++i) kept.push_back(single[i * single.size() / kMostSamples]);
  return kept;
}

/// The median as all reports take it: the upper one of two in the middle.
inline double median_of_samples(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace shardmat::tools
