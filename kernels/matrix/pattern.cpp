#include "kernels/matrix/pattern.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>

#include "kernels/base/parallel.h"
#include "kernels/matrix/rows.h"

namespace shardmat {
namespace {

constexpr std::int64_t kNoColumn = std::numeric_limits<std::int64_t>::max();

/// Merges the rows of each row of blocks by block column.
template <int b>
void count_blocks(const Rows& rows, std::int64_t begin, std::int64_t end, BlockStatistics& found) {
  for (std::int64_t first = begin; first < end; first += b) {
    const int height = static_cast<int>(std::min<std::int64_t>(b, end - first));
    ColumnPointer at[b], last[b];
    for (int r = 0; r < height; ++r)
      at[r] = rows.columns() + rows.begin(first + r), last[r] = rows.columns() + rows.end(first + r);
    while (true) {
      std::int64_t block = kNoColumn;
      for (int r = 0; r < height; ++r)
        if (at[r] != last[r]) block = std::min(block, *at[r] / b);
      if (block == kNoColumn) break;
      int entries = 0;
      for (int r = 0; r < height; ++r)
        for (; at[r] != last[r] && *at[r] < (block + 1) * b; ++at[r]) ++entries;
      ++found.occupied;
      found.full += entries == b * b;
    }
  }
}

void count_runs(ColumnPointer begin, ColumnPointer end, PatternStatistics& found) {
  while (begin != end) {
    const ColumnPointer first = begin++;
    while (begin != end && *begin == begin[-1] + 1) ++begin;
    const std::int64_t length = begin - first;
    ++found.runs;
    found.run_lengths.add(length);
    if (length > 1) found.entries_in_runs += length;
  }
}

void count_values(const ValueView& values, PatternStatistics& found) {
  for (const double value : values) {
    const double size = std::abs(value);
    found.explicit_zeros += size == 0;
    found.nonfinite += !std::isfinite(size);
    if (size == 0 || !std::isfinite(size)) continue;
    found.smallest = found.smallest == 0 ? size : std::min(found.smallest, size);
    found.largest = std::max(found.largest, size);
  }
}

void merge(PatternStatistics& all, const PatternStatistics& more) {
  all.nnz += more.nnz;
  all.empty_rows += more.empty_rows;
  all.row_lengths.add(more.row_lengths);
  all.runs += more.runs;
  all.entries_in_runs += more.entries_in_runs;
  all.run_lengths.add(more.run_lengths);
  all.lower_bandwidth = std::max(all.lower_bandwidth, more.lower_bandwidth);
  all.upper_bandwidth = std::max(all.upper_bandwidth, more.upper_bandwidth);
  all.profile += more.profile;
  all.main_diagonal += more.main_diagonal;
  all.explicit_zeros += more.explicit_zeros;
  all.nonfinite += more.nonfinite;
  if (more.smallest > 0) all.smallest = all.smallest == 0 ? more.smallest : std::min(all.smallest, more.smallest);
  all.largest = std::max(all.largest, more.largest);
  for (std::size_t i = 0; i < all.blocks.size(); ++i) {
    all.blocks[i].occupied += more.blocks[i].occupied;
    all.blocks[i].full += more.blocks[i].full;
  }
}

PatternStatistics nothing() {
  PatternStatistics none;
  for (const int size : PatternStatistics::kBlockSizes) none.blocks.push_back({size, 0, 0});
  return none;
}

std::int64_t count_set(const HostVector<unsigned char>& flags) {
  std::atomic<std::int64_t> set = 0;
  parallel_ranges(static_cast<std::int64_t>(flags.size()), 1 << 20, [&](std::int64_t begin, std::int64_t end) {
    set += std::count(flags.begin() + begin, flags.begin() + end, 1);
  });
  return set;
}

}  // namespace

void Histogram::add(const Histogram& other) {
  for (std::size_t b = 0; b < bins.size(); ++b) bins[b] += other.bins[b];
}

double BlockStatistics::fill(std::int64_t nnz) const {
  return occupied == 0 ? 1 : static_cast<double>(nnz) / (static_cast<double>(occupied) * size * size);
}

double BlockStatistics::full_share(std::int64_t nnz) const {
  return nnz == 0 ? 0 : static_cast<double>(full) * size * size / static_cast<double>(nnz);
}

PatternScan::PatternScan(std::int64_t rows, std::int64_t cols) : all_(nothing()) {
  all_.rows = rows;
  all_.cols = cols;
  columns_.assign(static_cast<std::size_t>(cols), 0);
  diagonals_.assign(static_cast<std::size_t>(rows + cols), 0);
}

void PatternScan::scan_rows(std::int64_t first_row, const CsrView& slice, std::int64_t begin, std::int64_t end,
                            PatternStatistics& found) {
  const Rows rows(slice);
  const auto flag = [](unsigned char& set) { std::atomic_ref<unsigned char>(set).store(1, std::memory_order_relaxed); };
  for (std::int64_t r = begin; r < end; ++r) {
    const std::int64_t row = first_row + r;
    const ColumnPointer first = rows.columns() + rows.begin(r), last = rows.columns() + rows.end(r);
    found.row_lengths.add(last - first);
    found.empty_rows += first == last;
    if (first == last) continue;
    found.lower_bandwidth = std::max(found.lower_bandwidth, row - *first);
    found.upper_bandwidth = std::max(found.upper_bandwidth, last[-1] - row);
    found.profile += std::max<std::int64_t>(0, row - *first);
    found.main_diagonal += std::binary_search(first, last, row);
    count_runs(first, last, found);
    unsigned char* const diagonals = diagonals_.data() + (all_.rows - 1 - row);
    for (ColumnPointer column = first; column != last; ++column) {
      flag(columns_[static_cast<std::size_t>(*column)]);
      flag(diagonals[*column]);
    }
  }
  const std::int64_t from = rows.begin(begin), entries = rows.begin(end) - from;
  found.nnz += entries;
  count_values(slice.values.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(entries)), found);
  count_blocks<2>(rows, begin, end, found.blocks[0]);
  count_blocks<3>(rows, begin, end, found.blocks[1]);
  count_blocks<4>(rows, begin, end, found.blocks[2]);
  count_blocks<6>(rows, begin, end, found.blocks[3]);
}

void PatternScan::add(std::int64_t first_row, const CsrView& slice) {
  const std::int64_t groups = (slice.rows + kRowMultiple - 1) / kRowMultiple;
  const std::int64_t tasks = std::min<std::int64_t>(groups, std::int64_t{16} * thread_count());
  std::mutex mutex;
  parallel_tasks(tasks, [&](std::int64_t t) {
    PatternStatistics found = nothing();
    const std::int64_t begin = groups * t / tasks * kRowMultiple, end = groups * (t + 1) / tasks * kRowMultiple;
    scan_rows(first_row, slice, begin, std::min(end, slice.rows), found);
    const std::lock_guard lock(mutex);
    merge(all_, found);
  });
}

PatternStatistics PatternScan::result() const {
  PatternStatistics result = all_;
  result.empty_columns = result.cols - count_set(columns_);
  result.diagonals = count_set(diagonals_);
  return result;
}

std::vector<std::int64_t> row_length_quantiles(std::span<const std::int64_t> row_ptr, std::span<const double> at) {
  std::vector<std::int64_t> quantiles(at.size(), 0);
  if (row_ptr.size() < 2) return quantiles;
  HostVector<std::int64_t> lengths(row_ptr.size() - 1);
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = row_ptr[i + 1] - row_ptr[i];
  for (std::size_t q = 0; q < at.size(); ++q) {
    const auto rank = static_cast<std::ptrdiff_t>(std::ceil(at[q] * static_cast<double>(lengths.size())));
    const auto place = lengths.begin() + std::max<std::ptrdiff_t>(0, rank - 1);
    std::nth_element(lengths.begin(), place, lengths.end());
    quantiles[q] = *place;
  }
  return quantiles;
}

}  // namespace shardmat
