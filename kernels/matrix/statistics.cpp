#include "kernels/matrix/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/base/parallel.h"

namespace shardmat {

RowStatistics row_statistics(std::span<const std::int64_t> row_ptr) {
  RowStatistics s;
  if (row_ptr.size() < 2) return s;
  s.rows = static_cast<std::int64_t>(row_ptr.size()) - 1;
  s.nnz = row_ptr.back() - row_ptr.front();
  s.mean_row = static_cast<double>(s.nnz) / static_cast<double>(s.rows);
  s.min_row = std::numeric_limits<std::int64_t>::max();
  // Parts of a fixed size are added in a fixed order, on any number of threads.
  struct Part {
    std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0, empty = 0;
    double squares = 0;
  };
  constexpr std::int64_t kRowsOfPart = 1 << 16;
  std::vector<Part> parts(static_cast<std::size_t>((s.rows + kRowsOfPart - 1) / kRowsOfPart));
  parallel_tasks(std::ssize(parts), [&](std::int64_t p) {
    Part part;
    const std::int64_t end = std::min(s.rows, (p + 1) * kRowsOfPart);
    for (std::int64_t i = p * kRowsOfPart; i < end; ++i) {
      const std::int64_t length = row_ptr[static_cast<std::size_t>(i) + 1] - row_ptr[static_cast<std::size_t>(i)];
      part.least = std::min(part.least, length), part.most = std::max(part.most, length);
      part.empty += length == 0 ? 1 : 0;
      const double distance = static_cast<double>(length) - s.mean_row;
      part.squares += distance * distance;
    }
    parts[static_cast<std::size_t>(p)] = part;
  });
  double squares = 0;
  for (const Part& part : parts) {
    s.min_row = std::min(s.min_row, part.least), s.max_row = std::max(s.max_row, part.most);
    s.empty_rows += part.empty, squares += part.squares;
  }
  s.stddev_row = std::sqrt(squares / static_cast<double>(s.rows));
  return s;
}

}  // namespace shardmat
