// Rows of a transposed product on host threads: each range of rows adds to a window of its own, the columns that it has, and
// the windows are then added in the order of the ranges. So sums do not depend on scheduling.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/base/parallel.h"

namespace shardmat {

/// The columns first … last - 1; none unless first < last.
struct ColumnSpan {
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = 0;

  std::int64_t count() const { return std::max<std::int64_t>(0, last - first); }
  void add(std::int64_t column) { first = std::min(first, column), last = std::max(last, column + 1); }
  void add(const ColumnSpan& other) { first = std::min(first, other.first), last = std::max(last, other.last); }
};

/// A range of rows, or of what a format has instead (slices, block rows), and its window.
struct WindowedRange {
  std::int64_t begin = 0, end = 0;
  ColumnSpan columns;
  std::int64_t place = 0;  ///< of its window's first entry among those of all windows
};

/// `starts`: as even_starts(). `columns_of(begin, end)`: the columns of a range; several threads call it. `nnz` and
/// `entries`: nonzeros, and entries of y. Neighbouring ranges are joined until adding the windows is little work.
template <class ColumnsOf>
std::vector<WindowedRange> windowed_ranges(const std::vector<std::int64_t>& starts, std::int64_t nnz, std::int64_t entries,
                                           const ColumnsOf& columns_of) {
  std::vector<WindowedRange> ranges(starts.size() - 1);
  parallel_tasks(std::ssize(ranges), [&](std::int64_t t) {
    const auto r = static_cast<std::size_t>(t);
    ranges[r] = {starts[r], starts[r + 1], columns_of(starts[r], starts[r + 1]), 0};
  });
  const auto all = [&] {
    std::int64_t sum = 0;
    for (const WindowedRange& range : ranges) sum += range.columns.count();
    return sum;
  };
  const auto threads = static_cast<std::size_t>(thread_count());
  while (ranges.size() > 1 && all() > (ranges.size() > threads ? entries + entries / 4 : std::max(entries, nnz / 2))) {
    for (std::size_t r = 0; r + 1 < ranges.size(); r += 2) {
      ranges[r].end = ranges[r + 1].end;
      ranges[r].columns.add(ranges[r + 1].columns);
      ranges[r / 2] = ranges[r];
    }
    if (ranges.size() % 2 == 1) ranges[ranges.size() / 2] = ranges.back();
    ranges.resize((ranges.size() + 1) / 2);
  }
  std::int64_t place = 0;
  for (WindowedRange& range : ranges) range.place = place, place += range.columns.count();
  return ranges;
}

}  // namespace shardmat
