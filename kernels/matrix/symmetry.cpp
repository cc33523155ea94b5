#include "kernels/matrix/symmetry.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "kernels/base/parallel.h"

namespace shardmat {
namespace {

constexpr std::int64_t kGrain = 1 << 12;  ///< rows

/// Two stored entries that mirror each other.
void count_pair(double one, double other, double scale_of_row, double scale_of_other_row, Symmetry& found) {
  found.mirrored += 2;
  found.equal += one == other ? 2 : 0;
  found.largest_difference = std::max(found.largest_difference, std::abs(one - other));
  found.largest_relative =
      std::max(found.largest_relative, relative_difference(one, other, scale_of_row, scale_of_other_row));
}

/// A stored entry whose mirror image is not stored.
void count_single(double value, double scale_of_row, double scale_of_other_row, Symmetry& found) {
  found.largest_relative = std::max(found.largest_relative, relative_difference(value, 0, scale_of_row, scale_of_other_row));
}

void add(const Symmetry& some, Symmetry& all) {
  all.off_diagonal += some.off_diagonal;
  all.mirrored += some.mirrored;
  all.equal += some.equal;
  all.largest_difference = std::max(all.largest_difference, some.largest_difference);
  all.largest_relative = std::max(all.largest_relative, some.largest_relative);
}

/// The largest magnitude of row `row` of a slice.
double scale_of(const CsrView& slice, std::int64_t row) {
  double scale = 0;
  const auto r = static_cast<std::size_t>(row);
  for (std::int64_t k = slice.row_ptr[r] - slice.row_ptr[0]; k < slice.row_ptr[r + 1] - slice.row_ptr[0]; ++k)
    scale = std::max(scale, std::abs(static_cast<double>(slice.values[static_cast<std::size_t>(k)])));
  return scale;
}

/// Calls visit(row, sums) for all rows, in parallel, and adds the sums up.
template <class Visit>
Symmetry over_rows(std::int64_t rows, const Visit& visit) {
  Symmetry all;
  std::mutex mutex;
  parallel_tasks((rows + kGrain - 1) / kGrain, [&](std::int64_t task) {
    Symmetry found;
    for (std::int64_t i = task * kGrain; i < std::min(rows, (task + 1) * kGrain); ++i) visit(i, found);
    const std::lock_guard lock(mutex);
    add(found, all);
  });
  return all;
}

}  // namespace

Symmetry symmetry(const CsrView& matrix) {
  const auto start = [&](std::int64_t row) { return matrix.row_ptr[static_cast<std::size_t>(row)] - matrix.row_ptr[0]; };
  const ColumnPointer columns = matrix.col_idx.data();
  const ValuePointer values = matrix.values.data();
  std::vector<double> scales(static_cast<std::size_t>(matrix.rows));
  parallel_ranges(matrix.rows, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) scales[static_cast<std::size_t>(i)] = scale_of(matrix, i);
  });
  const auto scale = [&](std::int64_t i) { return scales[static_cast<std::size_t>(i)]; };
  const auto mirror = [&](std::int64_t i, std::int64_t j) {  // the place of a_ji, or -1
    const ColumnPointer end = columns + start(j + 1), at = std::lower_bound(columns + start(j), end, i);
    return at != end && *at == i ? at - columns : -1;
  };
  Symmetry all = over_rows(matrix.rows, [&](std::int64_t i, Symmetry& found) {
    for (std::int64_t k = start(i); k < start(i + 1); ++k) {
      const std::int64_t j = columns[k];
      found.off_diagonal += i != j;
      if (j <= i) continue;
      const std::int64_t other = mirror(i, j);
      if (other >= 0) count_pair(values[k], values[other], scale(i), scale(j), found);
      else count_single(values[k], scale(i), scale(j), found);
    }
  });
  if (all.mirrored < all.off_diagonal)
    add(over_rows(matrix.rows,
                  [&](std::int64_t i, Symmetry& found) {
                    for (std::int64_t k = start(i); k < start(i + 1) && columns[k] < i; ++k)
                      if (mirror(i, columns[k]) < 0) count_single(values[k], scale(i), scale(columns[k]), found);
                  }),
        all);
  return all;
}

bool SymmetrySample::taken(std::int64_t low, std::int64_t high) const {
  std::uint64_t z = static_cast<std::uint64_t>(low) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(high);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return ((z ^ (z >> 31)) & mask_) == 0;
}

double SymmetrySample::scale(std::int64_t row) const {
  const auto at = static_cast<std::size_t>(row);
  return at < scales_.size() ? scales_[at] : 0;
}

void SymmetrySample::add(std::int64_t first_row, const CsrView& slice) {
  std::mutex mutex;
  scales_.resize(std::max(scales_.size(), static_cast<std::size_t>(first_row + slice.rows)));
  parallel_ranges(slice.rows, kGrain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<Entry> found;
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t row = first_row + r, base = slice.row_ptr[0];
      scales_[static_cast<std::size_t>(row)] = scale_of(slice, r);
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
  for (std::size_t k = 0; k < entries.size(); ++k) {
    const Entry& entry = entries[k];
    const double low = scale(entry.low), high = scale(entry.high);
    const bool paired = k + 1 < entries.size() && entry.low == entries[k + 1].low && entry.high == entries[k + 1].high;
    if (paired) count_pair(entry.value, entries[++k].value, low, high, found);
    else count_single(entry.value, low, high, found);
  }
  return found;
}

}  // namespace shardmat
