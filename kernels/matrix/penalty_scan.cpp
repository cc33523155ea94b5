#include "kernels/matrix/penalty_scan.h"

#include <algorithm>
#include <vector>

namespace shardmat {

void PenaltyScan::add(std::int64_t first_row, const CsrView& slice) {
  for (std::int64_t i = 0; i < slice.rows; ++i)
    rows_.push_back(diagonal_and_others(slice, static_cast<std::size_t>(i), first_row + i));
}

PenaltyStatistics PenaltyScan::result() const {
  PenaltyStatistics found;
  if (rows_.empty()) return found;
  std::vector<double> diagonals;
  for (const DiagonalAndOthers& row : rows_) diagonals.push_back(row.diagonal);
  const auto middle = diagonals.begin() + static_cast<std::ptrdiff_t>((diagonals.size() - 1) / 2);
  std::nth_element(diagonals.begin(), middle, diagonals.end());
  const double median = *middle;
  const auto found_above = [&](double reference) {
    return std::any_of(rows_.begin(), rows_.end(), [&](const DiagonalAndOthers& row) { return row.is_penalty(reference); });
  };
  double least_not_0 = median;
  for (const double diagonal : diagonals)
    if (diagonal > 0) least_not_0 = std::min(least_not_0, diagonal);
  const double reference = found_above(median) ? median : least_not_0;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (!rows_[i].is_penalty(reference)) continue;
    const double ratio = rows_[i].ratio(reference);
    if (found.count++ == 0) found.first = static_cast<std::int64_t>(i), found.least_ratio = ratio;
    found.least_ratio = std::min(found.least_ratio, ratio);
    found.largest_ratio = std::max(found.largest_ratio, ratio);
  }
  return found;
}

}  // namespace shardmat
