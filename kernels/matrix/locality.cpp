#include "kernels/matrix/locality.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/matrix/runs.h"

namespace shardmat {
namespace {

constexpr std::int64_t kGrainOfCount = 1 << 16;

/// Ranges of rows that parallel_tasks takes, one after another in the matrix.
std::int64_t ranges_of_rows(std::int64_t rows) {
  return std::clamp<std::int64_t>(rows / 4096, 1, std::int64_t{4} * thread_count());
}

/// The sum over threads of count(begin, end) over ranges of [0, length).
template <class Count>
std::int64_t parallel_count(std::int64_t length, const Count& count) {
  std::atomic<std::int64_t> all = 0;
  parallel_ranges(length, kGrainOfCount, [&](std::int64_t begin, std::int64_t end) { all += count(begin, end); });
  return all;
}

/// Places k in [begin, end) where columns[k] is in another line than columns[k - 1]; begin is at least 1.
template <class Index>
std::int64_t changes(Index columns, std::int64_t begin, std::int64_t end, int low_bits) {
  std::int64_t found = 0;
  for (std::int64_t k = begin; k < end; ++k) found += ((columns[k] ^ columns[k - 1]) >> low_bits) != 0;
  return found;
}

/// The emitted counts add up to `entries`, and there is one more of them than changes.
double mean_count(std::int64_t entries, std::int64_t changes) {
  return entries == 0 ? 0 : static_cast<double>(entries) / static_cast<double>(changes + 1);
}

/// Changes within a sequence. Each range also compares its first entry with the last of the range before it.
template <class Index>
std::int64_t changes(std::span<const Index> columns, int low_bits) {
  return parallel_count(static_cast<std::int64_t>(columns.size()) - 1, [&](std::int64_t begin, std::int64_t end) {
    return changes(columns.data(), begin + 1, end + 1, low_bits);
  });
}

template <class Index>
double locality(std::span<const Index> columns, int low_bits) {
  return mean_count(static_cast<std::int64_t>(columns.size()), changes(columns, low_bits));
}

}  // namespace

double column_locality(std::span<const std::int32_t> columns, int low_bits) { return locality(columns, low_bits); }
double column_locality(std::span<const std::int64_t> columns, int low_bits) { return locality(columns, low_bits); }
double column_locality(const CsrView& matrix, int low_bits) {
  return matrix.col_idx.first(static_cast<std::size_t>(matrix.nnz())).visit([&](const auto& columns) {
    return locality(columns, low_bits);
  });
}

double column_locality(const CsrView& matrix, int low_bits, std::span<const std::int64_t> row_order) {
  const ColumnPointer columns = matrix.col_idx.data();
  const auto start = [&](std::int64_t row) { return matrix.row_ptr[static_cast<std::size_t>(row)] - matrix.row_ptr[0]; };
  const std::int64_t found = parallel_count(matrix.rows, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t last = -1;  // entry read before this row's, in rows of this range or in front of it
    for (std::int64_t before = begin; before > 0 && last < 0; --before) {
      const std::int64_t row = row_order[static_cast<std::size_t>(before - 1)];
      if (start(row + 1) > start(row)) last = start(row + 1) - 1;
    }
    std::int64_t count = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = row_order[static_cast<std::size_t>(i)], first = start(row), after = start(row + 1);
      if (first == after) continue;
      if (last >= 0) count += ((columns[first] ^ columns[last]) >> low_bits) != 0;
      count += changes(columns, first + 1, after, low_bits);
      last = after - 1;
    }
    return count;
  });
  return mean_count(matrix.nnz(), found);
}

double folded_column_locality(const CsrView& matrix, int low_bits, std::int64_t width, FoldPadding padding) {
  if (width < 1)
    throw Error(ErrorKind::usage, fmt::format("rows cannot be folded to the width {}; it must be at least 1", width));
  /// The lines at each place of the pieces of a range of rows; -1 where no piece is so long.
  struct Range {
    std::vector<std::int64_t> first, last;
    std::int64_t changes = 0, entries = 0;
  };
  const std::int64_t tasks = ranges_of_rows(matrix.rows);
  std::vector<Range> ranges(static_cast<std::size_t>(tasks));
  parallel_tasks(tasks, [&](std::int64_t t) {
    Range& range = ranges[static_cast<std::size_t>(t)];
    range.first.assign(static_cast<std::size_t>(width), -1);
    range.last = range.first;
    for (std::int64_t row = matrix.rows * t / tasks; row < matrix.rows * (t + 1) / tasks; ++row) {
      const std::int64_t* const start = matrix.row_ptr.data() + row;
      const std::int64_t length = start[1] - start[0], pieces = (length + width - 1) / width;
      const std::int64_t read = padding == FoldPadding::counted ? pieces * width : length;
      range.entries += read;
      for (std::int64_t k = 0; k < read; ++k) {
        const auto place = static_cast<std::size_t>(k % width);
        const std::int64_t line =
            k < length ? matrix.col_idx[static_cast<std::size_t>(start[0] - matrix.row_ptr[0] + k)] >> low_bits : 0;
        if (range.last[place] < 0) range.first[place] = line;
        else range.changes += range.last[place] != line;
        range.last[place] = line;
      }
    }
  });
  std::int64_t found = 0, entries = 0, before = -1;
  for (const Range& range : ranges) found += range.changes, entries += range.entries;
  for (std::size_t place = 0; place < static_cast<std::size_t>(width); ++place)
    for (const Range& range : ranges) {
      if (range.first[place] < 0) continue;
      found += before >= 0 && before != range.first[place];
      before = range.last[place];
    }
  return mean_count(entries, found);
}

double rbp_column_locality(const CsrView& matrix, int low_bits) {
  /// What a range of rows reads.
  struct Range {
    std::int64_t first = -1, last = -1, changes = 0;
    void read(std::int64_t line) {
      if (last < 0) first = line;
      else changes += last != line;
      last = line;
    }
  };
  const Rows rows(matrix);
  const std::int64_t tasks = ranges_of_rows(rows.count());
  std::vector<Range> ranges(static_cast<std::size_t>(tasks));
  parallel_tasks(tasks, [&](std::int64_t t) {
    Range& range = ranges[static_cast<std::size_t>(t)];
    for (std::int64_t row = rows.count() * t / tasks; row < rows.count() * (t + 1) / tasks; ++row)
      for (const bool inside : {true, false})
        for (std::int64_t k = rows.begin(row); k < rows.end(row); ++k)
          if (in_run(rows, row, k) == inside) range.read(rows.column(k) >> low_bits);
  });
  std::int64_t found = 0, before = -1;
  for (const Range& range : ranges) {
    if (range.first < 0) continue;
    found += range.changes + (before >= 0 && before != range.first ? 1 : 0);
    before = range.last;
  }
  return mean_count(matrix.nnz(), found);
}

std::int64_t usual_fold_width(const CsrView& matrix) {
  std::int64_t filled = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(matrix.rows); ++i)
    filled += matrix.row_ptr[i + 1] > matrix.row_ptr[i];
  return filled == 0 ? 1 : (matrix.nnz() + filled - 1) / filled;
}

std::string_view name(ReadOrder order) {
  switch (order) {
    case ReadOrder::stored:
      return "CRS";
    case ReadOrder::sorted:
      return "sorted CRS";
    case ReadOrder::folded:
      return "Fold";
  }
  return "";
}

ReadOrder advised_order(double stored, double sorted, double folded) {
  constexpr double kNear = 0.95;
  const double largest = std::max({stored, sorted, folded});
  if (stored >= kNear * largest) return ReadOrder::stored;
  return folded >= sorted ? ReadOrder::folded : ReadOrder::sorted;
}

void ColumnLocality::add(const ColumnView& columns) {
  if (columns.empty()) return;
  if (entries_ > 0) changes_ += ((columns.front() ^ last_) >> low_bits_) != 0;
  changes_ += columns.visit([&](const auto& all) { return changes(all, low_bits_); });
  entries_ += static_cast<std::int64_t>(columns.size());
  last_ = columns.back();
}

double ColumnLocality::mean() const { return mean_count(entries_, changes_); }

}  // namespace shardmat
