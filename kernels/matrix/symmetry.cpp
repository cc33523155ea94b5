#include "kernels/matrix/symmetry.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "kernels/base/parallel.h"

namespace shardmat {
namespace {

constexpr std::int64_t kGrain = 1 << 12;  ///< rows

/// Two stored entries that mirror each other.
void count_pair(double one, double other, Symmetry& found) {
  found.mirrored += 2;
  found.equal += one == other ? 2 : 0;
  found.largest_difference = std::max(found.largest_difference, std::abs(one - other));
}

}  // namespace

Symmetry symmetry(const CsrView& matrix) {
  const auto start = [&](std::int64_t row) { return matrix.row_ptr[static_cast<std::size_t>(row)] - matrix.row_ptr[0]; };
  const ColumnPointer columns = matrix.col_idx.data();
  const ValuePointer values = matrix.values.data();
  Symmetry all;
  std::mutex mutex;
  parallel_tasks((matrix.rows + kGrain - 1) / kGrain, [&](std::int64_t task) {
    Symmetry found;
    for (std::int64_t i = task * kGrain; i < std::min(matrix.rows, (task + 1) * kGrain); ++i)
      for (std::int64_t k = start(i); k < start(i + 1); ++k) {
        const std::int64_t j = columns[k];
        found.off_diagonal += i != j;
        if (j <= i) continue;
        const ColumnPointer end = columns + start(j + 1), at = std::lower_bound(columns + start(j), end, i);
        if (at != end && *at == i) count_pair(values[k], values[at - columns], found);
      }
    const std::lock_guard lock(mutex);
    all.off_diagonal += found.off_diagonal;
    all.mirrored += found.mirrored;
    all.equal += found.equal;
    all.largest_difference = std::max(all.largest_difference, found.largest_difference);
  });
  return all;
}

bool SymmetrySample::taken(std::int64_t low, std::int64_t high) const {
  std::uint64_t z = static_cast<std::uint64_t>(low) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(high);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return ((z ^ (z >> 31)) & mask_) == 0;
}

void SymmetrySample::add(std::int64_t first_row, const CsrView& slice) {
  std::mutex mutex;
  parallel_ranges(slice.rows, kGrain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<Entry> found;
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t row = first_row + r, base = slice.row_ptr[0];
      for (std::int64_t k = slice.row_ptr[static_cast<std::size_t>(r)] - base;
           k < slice.row_ptr[static_cast<std::size_t>(r) + 1] - base; ++k) {
        const std::int64_t column = slice.col_idx[static_cast<std::size_t>(k)];
        const auto [low, high] = std::minmax(row, column);
        if (row != column && taken(low, high)) found.push_back({low, high, slice.values[static_cast<std::size_t>(k)]});
      }
    }
    const std::lock_guard lock(mutex);
    kept_.insert(kept_.end(), found.begin(), found.end());
  });
  while (static_cast<std::int64_t>(kept_.size()) > most_) {
    mask_ = 2 * mask_ + 1;
    std::erase_if(kept_, [&](const Entry& entry) { return !taken(entry.low, entry.high); });
  }
}

Symmetry SymmetrySample::result() {
  std::vector<Entry>& entries = kept_;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.low != b.low ? a.low < b.low : a.high < b.high; });
  Symmetry found;
  found.exact = mask_ == 0;
  found.off_diagonal = static_cast<std::int64_t>(entries.size());
  for (std::size_t k = 0; k + 1 < entries.size(); ++k)
    if (entries[k].low == entries[k + 1].low && entries[k].high == entries[k + 1].high)
      count_pair(entries[k].value, entries[k + 1].value, found);
  return found;
}

}  // namespace shardmat
