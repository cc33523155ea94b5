// Penalty rows of a matrix that is seen slice by slice (penalty_rule.h).
#pragma once

#include <cstdint>

#include "kernels/base/host_vector.h"
#include "kernels/matrix/penalty_rule.h"

namespace shardmat {

struct PenaltyStatistics {
  std::int64_t count = 0;
  std::int64_t first = 0;    ///< the first such row
  double least_ratio = 0;    ///< of the diagonal to the larger of the other entries and the median diagonal
  double largest_ratio = 0;  ///< 0: that is 0
};

class PenaltyScan {
 public:
  /// Takes 16 bytes a row of a square matrix.
  explicit PenaltyScan(std::int64_t rows) { rows_.reserve(static_cast<std::size_t>(rows)); }
  /// Slices come in the order of the rows, with global columns.
  void add(std::int64_t first_row, const CsrView& slice);
  /// The rows that look like penalty rows by their diagonals and own entries; those that are more than half of all, too.
  PenaltyStatistics result() const;

 private:
  HostVector<DiagonalAndOthers> rows_;
};

}  // namespace shardmat
