#include "kernels/matrix/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardmat {

RowStatistics row_statistics(std::span<const std::int64_t> row_ptr) {
  RowStatistics s;
  if (row_ptr.size() < 2) return s;
  s.rows = static_cast<std::int64_t>(row_ptr.size()) - 1;
  s.nnz = row_ptr.back() - row_ptr.front();
  s.mean_row = static_cast<double>(s.nnz) / static_cast<double>(s.rows);
  s.min_row = std::numeric_limits<std::int64_t>::max();
  double squares = 0;
  for (std::size_t i = 0; i + 1 < row_ptr.size(); ++i) {
    const std::int64_t length = row_ptr[i + 1] - row_ptr[i];
    s.min_row = std::min(s.min_row, length);
    s.max_row = std::max(s.max_row, length);
    s.empty_rows += length == 0;
    const double distance = static_cast<double>(length) - s.mean_row;
    squares += distance * distance;
  }
  s.stddev_row = std::sqrt(squares / static_cast<double>(s.rows));
  return s;
}

}  // namespace shardmat
