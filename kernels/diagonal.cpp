#include "kernels/diagonal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "kernels/base/parallel.h"

namespace shardmat {
namespace {

constexpr std::int64_t kRowsOfDiagonal = 1 << 12;  // for a thread

void add(const DiagonalExtremes& more, DiagonalExtremes& to) {
  to.lowest = std::min(to.lowest, more.lowest), to.least = std::min(to.least, more.least);
  to.least_not_0 = std::min(to.least_not_0, more.least_not_0), to.most = std::max(to.most, more.most);
}

}  // namespace

DiagonalExtremes diagonal_extremes(const CsrView& rows, std::int64_t first, DiagonalAndOthers* of_rows) {
  DiagonalExtremes all;
  if (rows.rows == 0) return all;
  std::mutex mutex;
  rows.values.visit([&](auto values) {
    rows.col_idx.visit([&](auto columns) {
      parallel_ranges(rows.rows, kRowsOfDiagonal, [&](std::int64_t begin, std::int64_t end) {
        DiagonalExtremes found;
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t *const start = &rows.row_ptr[static_cast<std::size_t>(i)], origin = rows.row_ptr[0];
          double entry = 0;
          const DiagonalAndOthers row =
              diagonal_and_others(columns, values, start[0] - origin, start[1] - origin, first + i, entry);
          if (of_rows != nullptr) of_rows[i] = row;
          add({std::isnan(entry) ? -std::numeric_limits<double>::infinity() : entry, row.diagonal,
               row.diagonal > 0 ? row.diagonal : found.least_not_0, row.above_others() ? row.diagonal : 0},
              found);
        }
        const std::lock_guard lock(mutex);
        add(found, all);
      });
    });
  });
  return all;
}

}  // namespace shardmat
