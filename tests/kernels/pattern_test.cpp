#include "kernels/matrix/pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "kernels/matrix/symmetry.h"
#include "tests/support/matrix_zoo.h"

namespace shardmat {
namespace {

using Place = std::pair<std::int64_t, std::int64_t>;

std::map<Place, double> entries_of(const HostCsr& m) {
  std::map<Place, double> entries;
  for (std::int64_t i = 0; i < m.rows; ++i)
    for (std::int64_t k = m.row_ptr[static_cast<std::size_t>(i)]; k < m.row_ptr[static_cast<std::size_t>(i) + 1]; ++k)
      entries[{i, m.col_idx[static_cast<std::size_t>(k)]}] = m.values[static_cast<std::size_t>(k)];
  return entries;
}

HostCsr from_entries(std::int64_t rows, std::int64_t cols, const std::map<Place, double>& entries) {
  HostCsr m;
  m.rows = rows;
  m.cols = cols;
  auto next = entries.begin();
  for (std::int64_t i = 0; i < rows; ++i) {
    for (; next != entries.end() && next->first.first == i; ++next) {
      m.col_idx.push_back(next->first.second);
      m.values.push_back(next->second);
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.values.size()));
  }
  return m;
}

/// Calls use(first_row, view) for slices of `rows` rows.
template <class Use>
void in_slices(const HostCsr& m, std::int64_t rows, const Use& use) {
  const CsrView all = m.view();
  for (std::int64_t begin = 0; begin < m.rows; begin += rows) {
    const std::int64_t end = std::min(m.rows, begin + rows);
    const auto pointers = all.row_ptr.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin + 1));
    const auto first = static_cast<std::size_t>(pointers.front()), count = static_cast<std::size_t>(pointers.back()) - first;
    use(begin, CsrView{end - begin, m.cols, pointers, all.col_idx.subspan(first, count), all.values.subspan(first, count)});
  }
}

PatternStatistics scan(const HostCsr& m, std::int64_t slice_rows) {
  PatternScan scan(m.rows, m.cols);
  in_slices(m, slice_rows, [&](std::int64_t first, const CsrView& slice) { scan.add(first, slice); });
  return scan.result();
}

/// Everything again, entry by entry out of a map.
void expect_as_counted_slowly(const PatternStatistics& found, const HostCsr& m) {
  const auto entries = entries_of(m);
  std::set<std::int64_t> rows, columns, diagonals;
  std::map<std::int64_t, std::int64_t> first_column;
  std::map<std::int64_t, std::int64_t> length;
  std::int64_t lower = 0, upper = 0, zeros = 0, main = 0, starts = 0, alone = 0;
  double smallest = 0, largest = 0;
  for (const auto& [place, value] : entries) {
    const auto [i, j] = place;
    rows.insert(i), columns.insert(j), diagonals.insert(j - i), first_column.insert({i, j}), ++length[i];
    lower = std::max(lower, i - j), upper = std::max(upper, j - i), main += i == j, zeros += value == 0;
    const bool before = entries.contains({i, j - 1}), after = entries.contains({i, j + 1});
    starts += !before, alone += !before && !after;
    if (value != 0) smallest = smallest == 0 ? std::abs(value) : std::min(smallest, std::abs(value));
    largest = std::max(largest, std::abs(value));
  }
  std::int64_t profile = 0;
  for (const auto& [i, j] : first_column) profile += std::max<std::int64_t>(0, i - j);
  const auto size = [](const auto& set) { return static_cast<std::int64_t>(set.size()); };
  EXPECT_EQ(found.nnz, size(entries));
  EXPECT_EQ(found.empty_rows, m.rows - size(rows));
  EXPECT_EQ(found.empty_columns, m.cols - size(columns));
  EXPECT_EQ(found.diagonals, size(diagonals));
  EXPECT_EQ(found.main_diagonal, main);
  EXPECT_EQ(found.lower_bandwidth, lower);
  EXPECT_EQ(found.upper_bandwidth, upper);
  EXPECT_EQ(found.profile, profile);
  EXPECT_EQ(found.runs, starts);
  EXPECT_EQ(found.entries_in_runs, found.nnz - alone);
  EXPECT_EQ(found.run_lengths.bins[1], alone);
  EXPECT_EQ(found.explicit_zeros, zeros);
  EXPECT_EQ(found.smallest, smallest);
  EXPECT_EQ(found.largest, largest);
  Histogram lengths;
  for (std::int64_t i = 0; i < m.rows; ++i) lengths.add(length[i]);
  EXPECT_EQ(found.row_lengths.bins, lengths.bins);
  ASSERT_EQ(found.blocks.size(), 4u);
  for (const BlockStatistics& block : found.blocks) {
    std::map<Place, int> counts;
    for (const auto& [place, value] : entries) ++counts[{place.first / block.size, place.second / block.size}];
    EXPECT_EQ(block.occupied, size(counts)) << block.size;
    EXPECT_EQ(block.full, std::count_if(counts.begin(), counts.end(),
                                        [&](const auto& count) { return count.second == block.size * block.size; }));
  }
}

TEST(Pattern, OfTheZooIsAsCountedSlowlyInAnySlices) {
  for (const auto& [name, m] : test::matrix_zoo())
    for (const std::int64_t rows : {PatternScan::kRowMultiple, 5 * PatternScan::kRowMultiple, m.rows + 12}) {
      SCOPED_TRACE(name + " in slices of " + std::to_string(rows));
      expect_as_counted_slowly(scan(m, rows), m);
    }
}

TEST(Pattern, OfASmallMatrixByHand) {
  // 1 2 . 3
  // 4 5 . .
  // . . 0 .
  const HostCsr m{3, 4, {0, 3, 5, 6}, {0, 1, 3, 0, 1, 2}, {1, -2, 3, 4, 5, 0}};
  const PatternStatistics found = scan(m, 12);
  EXPECT_EQ(found.runs, 4);
  EXPECT_EQ(found.entries_in_runs, 4);
  EXPECT_DOUBLE_EQ(found.mean_run(), 1.5);
  EXPECT_EQ(found.lower_bandwidth, 1);
  EXPECT_EQ(found.upper_bandwidth, 3);
  EXPECT_EQ(found.profile, 1);
  EXPECT_EQ(found.diagonals, 4);  // -1, 0, 1, 3
  EXPECT_EQ(found.main_diagonal, 3);
  EXPECT_EQ(found.explicit_zeros, 1);
  EXPECT_EQ(found.smallest, 1);
  EXPECT_EQ(found.largest, 5);
  EXPECT_EQ(found.blocks[0].occupied, 3);
  EXPECT_EQ(found.blocks[0].full, 1);
  EXPECT_DOUBLE_EQ(found.blocks[0].fill(found.nnz), 0.5);
  EXPECT_DOUBLE_EQ(found.blocks[0].full_share(found.nnz), 4.0 / 6);
  EXPECT_FALSE(found.lower_triangular() || found.upper_triangular() || found.diagonal());
}

TEST(Pattern, TriangularAndDiagonalAreSeen) {
  const PatternStatistics upper = scan(from_entries(3, 3, {{{0, 0}, 1}, {{0, 2}, 1}}), 12);
  EXPECT_TRUE(upper.upper_triangular() && !upper.lower_triangular() && !upper.diagonal());
  const PatternStatistics lower = scan(from_entries(3, 3, {{{2, 0}, 1}}), 12);
  EXPECT_TRUE(lower.lower_triangular() && !lower.upper_triangular());
  EXPECT_TRUE(scan(from_entries(3, 3, {{{1, 1}, 1}}), 12).diagonal());
}

TEST(Pattern, ValuesThatAreNotFiniteAreCountedAndLeftOut) {
  const PatternStatistics found = scan(from_entries(2, 2, {{{0, 0}, NAN}, {{0, 1}, -2}, {{1, 1}, INFINITY}}), 12);
  EXPECT_EQ(found.nonfinite, 2);
  EXPECT_EQ(found.smallest, 2);
  EXPECT_EQ(found.largest, 2);
}

TEST(Pattern, HistogramBinsArePowersOfTwo) {
  Histogram histogram;
  for (const std::int64_t size : {0, 1, 2, 3, 4, 7, 8}) histogram.add(size);
  EXPECT_EQ(histogram.bins[0], 1);
  EXPECT_EQ(histogram.bins[1], 1);
  EXPECT_EQ(histogram.bins[2], 2);
  EXPECT_EQ(histogram.bins[3], 2);
  EXPECT_EQ(histogram.bins[4], 1);
  EXPECT_EQ(Histogram::smallest(3), 4);
  EXPECT_EQ(Histogram::largest(3), 7);
  EXPECT_EQ(Histogram::largest(0), 0);
  EXPECT_EQ(Histogram::largest(63), std::numeric_limits<std::int64_t>::max());
}

TEST(RowLengthQuantiles, AreExact) {
  const std::int64_t row_ptr[] = {5, 5, 8, 9, 19, 20};  // 0 3 1 10 1
  const double at[] = {0, 0.2, 0.5, 0.6, 0.61, 1};
  EXPECT_EQ(row_length_quantiles(row_ptr, at), (std::vector<std::int64_t>{0, 0, 1, 1, 3, 10}));
  EXPECT_EQ(row_length_quantiles({}, at), std::vector<std::int64_t>(6, 0));
}

void expect_as_in_map(const Symmetry& found, const HostCsr& m) {
  const auto entries = entries_of(m);
  Symmetry wanted;
  std::map<std::int64_t, double> scales;
  for (const auto& [place, value] : entries) scales[place.first] = std::max(scales[place.first], std::abs(value));
  for (const auto& [place, value] : entries) {
    if (place.first == place.second) continue;
    ++wanted.off_diagonal;
    const auto mirror = entries.find({place.second, place.first});
    wanted.largest_relative = std::max(
        wanted.largest_relative,
        relative_difference(value, mirror == entries.end() ? 0 : mirror->second, scales[place.first], scales[place.second]));
    if (mirror == entries.end()) continue;
    ++wanted.mirrored;
    wanted.equal += mirror->second == value;
    wanted.largest_difference = std::max(wanted.largest_difference, std::abs(mirror->second - value));
  }
  EXPECT_TRUE(found.exact);
  EXPECT_EQ(found.off_diagonal, wanted.off_diagonal);
  EXPECT_EQ(found.mirrored, wanted.mirrored);
  EXPECT_EQ(found.equal, wanted.equal);
  EXPECT_EQ(found.largest_difference, wanted.largest_difference);
  EXPECT_EQ(found.largest_relative, wanted.largest_relative);
}

TEST(RelativeDifference, IsRelativeToTheEntriesAndTheSmallerRow) {
  EXPECT_EQ(relative_difference(0, 0, 0, 0), 0);
  EXPECT_EQ(relative_difference(2, 1, 1, 8), 0.5);
  EXPECT_EQ(relative_difference(1e-3, 0, 1e30, 4), 1e-3 / 4);
  EXPECT_EQ(relative_difference(-1, 1, 1, 1), 2);
  EXPECT_EQ(relative_difference(1e308, -1e308, 1e308, 1e308), 2);
  EXPECT_TRUE(std::isnan(relative_difference(std::nan(""), 1, 1, 1)));
}

Symmetry sample(const HostCsr& m, std::int64_t most) {
  SymmetrySample sample(most);
  in_slices(m, 64, [&](std::int64_t first, const CsrView& slice) { sample.add(first, slice); });
  return sample.result();
}

/// Every third pair of a random pattern mirrored, half of those with the same value.
HostCsr half_symmetric(std::int64_t n) {
  std::map<Place, double> entries;
  std::uint64_t counter = 0;
  const auto index = [&] { return static_cast<std::int64_t>((test::value_of(counter++) + 1) / 2 * static_cast<double>(n)); };
  for (std::int64_t k = 0; k < 10 * n; ++k) {
    const std::int64_t i = index(), j = index();
    const double value = test::value_of(counter++);
    entries[{i, j}] = value;
    if (k % 3 == 0) entries[{j, i}] = k % 2 == 0 ? value : value + 1;
  }
  return from_entries(n, n, entries);
}

TEST(SymmetryOf, MatricesIsExactFromMemoryAndFromSlicesOfSmallOnes) {
  auto zoo = test::matrix_zoo();
  zoo.push_back({"half symmetric", half_symmetric(5000)});
  for (const auto& [name, m] : zoo) {
    if (m.rows != m.cols) continue;
    SCOPED_TRACE(name);
    expect_as_in_map(symmetry(m.view()), m);
    expect_as_in_map(sample(m, m.nnz()), m);
  }
}

TEST(SymmetryOf, LargeMatricesIsEstimatedFromWholePairs) {
  const HostCsr m = half_symmetric(5000);
  const Symmetry all = symmetry(m.view()), some = sample(m, 10000);
  EXPECT_FALSE(some.exact);
  EXPECT_LE(some.off_diagonal, 10000);
  EXPECT_GE(some.off_diagonal, 2500);
  const auto share = [](std::int64_t part, const Symmetry& of) {
    return static_cast<double>(part) / static_cast<double>(of.off_diagonal);
  };
  EXPECT_NEAR(share(some.mirrored, some), share(all.mirrored, all), 0.04);
  EXPECT_NEAR(share(some.equal, some), share(all.equal, all), 0.04);
  EXPECT_GT(share(all.mirrored, all), 0.4);
  EXPECT_LT(share(all.equal, all), 0.9 * share(all.mirrored, all));
}

}  // namespace
}  // namespace shardmat
