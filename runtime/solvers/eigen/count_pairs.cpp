#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/solvers/eigen/shifted.h"

namespace shardmat::modes {
namespace {

/// Between two eigenvalues, of their distance from the shift: more is a gap where eigenvalues can be counted.
constexpr double kLeastGap = 1e-4;

}  // namespace

void count_pairs(ShiftedInverse& inverse, double sigma, bool both_sides, std::optional<double> next, PairResult& result) {
  std::vector<double> apart;  // distances from the shift
  for (const Eigenpair& pair : result.pairs) apart.push_back(std::abs(pair.value - sigma));
  std::sort(apart.begin(), apart.end());
  apart.push_back(std::max(next ? std::abs(*next - sigma) : 2 * apart.back() + std::abs(sigma), apart.back()));
  auto inside = std::ssize(apart) - 1;
  const auto gap = [&](std::int64_t i) {
    return apart[static_cast<std::size_t>(i)] - apart[static_cast<std::size_t>(i - 1)];
  };
  while (inside > 0 && gap(inside) <= kLeastGap * apart[static_cast<std::size_t>(inside)]) --inside;
  if (inside == 0) {
    result.completeness = "not counted: the eigenvalues lie too close together";
    return;
  }
  // The next one is an estimate, which moves towards the last one that was found: nearer to that, if there are too many.
  const double last = apart[static_cast<std::size_t>(inside - 1)];
  for (const double beyond : {0.3 * gap(inside), std::min(0.03 * gap(inside), kLeastGap / 10 * last)}) {
    const double radius = last + beyond;
    const std::int64_t to = inverse.below(sigma + radius).value_or(-1),
                       from = both_sides ? inverse.below(sigma - radius).value_or(-1) : 0;
    if (to < 0 || from < 0) {
      result.completeness = "not counted: " + inverse.why_not_counted();
      return;
    }
    result.completeness = fmt::format("factors count {} eigenvalues in [{:.6g}, {:.6g}]; {} were found", to - from,
                                      both_sides ? sigma - radius : 0.0, sigma + radius, inside);
    result.missing = to - from - inside;
    if (result.missing <= 0) break;
  }
  result.confirmed = result.missing == 0;
  if (result.missing < 0) result.completeness += ": rounding errors change signs of pivots";
}

}  // namespace shardmat::modes
