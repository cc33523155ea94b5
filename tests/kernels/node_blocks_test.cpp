#include "kernels/matrix/node_blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

namespace shardmat {
namespace {

using Pattern = std::vector<std::set<std::int64_t>>;

/// In pieces of `piece` rows, which must not matter while groups of rows are not cut.
std::int64_t found(const Pattern& pattern, std::int64_t piece = 300) {
  const std::int64_t rows = std::ssize(pattern);
  NodeBlockSample sample(rows);
  for (const RowInterval& range : node_block_samples(rows))
    for (std::int64_t begin = range.begin; begin < range.end; begin += piece) {
      std::vector<std::int64_t> starts{0}, columns;
      for (std::int64_t row = begin; row < std::min(range.end, begin + piece); ++row) {
        const auto& of_row = pattern[static_cast<std::size_t>(row)];
        columns.insert(columns.end(), of_row.rbegin(), of_row.rend());  // in any order
        starts.push_back(std::ssize(columns));
      }
      CsrView view;
      view.rows = std::ssize(starts) - 1, view.cols = rows;
      view.row_ptr = starts, view.col_idx = std::span<const std::int64_t>(columns);
      sample.add(begin, view);
    }
  return node_block_size(rows, [&](const std::vector<BlockGrouping>& groupings) {
    std::vector<BlockTally> tallies;
    for (const BlockGrouping& grouping : groupings) tallies.push_back(sample.tally(grouping));
    return tallies;
  });
}

/// Neighbours of a node on an nx × ny × nz grid: `stars` keeps those on its axes only.
template <class F>
Pattern on_grid(int nx, int ny, int nz, int unknowns, bool star, const F& keep) {
  Pattern pattern(static_cast<std::size_t>(nx) * ny * nz * unknowns);
  for (int node = 0; node < nx * ny * nz; ++node)
    for (int dz = -1; dz <= 1; ++dz)
      for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
          const int x = node % nx + dx, y = node / nx % ny + dy, z = node / nx / ny + dz;
          if (x < 0 || x >= nx || y < 0 || y >= ny || z < 0 || z >= nz) continue;
          const int axes = std::abs(dx) + std::abs(dy) + std::abs(dz);
          if (star && axes > 1) continue;
          const int other = (z * ny + y) * nx + x;
          for (int i = 0; i < unknowns; ++i)
            for (int j = 0; j < unknowns; ++j)
              if (keep(dx, dy, dz, i, j))
                pattern[static_cast<std::size_t>(node * unknowns + i)].insert(other * unknowns + j);
        }
  return pattern;
}

constexpr auto kAll = [](int, int, int, int, int) { return true; };
/// What uniform hexahedra of one elastic material leave: entries that are odd in a direction cancel.
constexpr auto kUniformHexahedra = [](int dx, int dy, int dz, int i, int j) {
  const int d[] = {dx, dy, dz};
  return i == j || (d[i] != 0 && d[j] != 0);
};

TEST(NodeBlocks, OfFullBlocks) {
  for (int unknowns = 2; unknowns <= 6; ++unknowns) {
    SCOPED_TRACE(unknowns);
    EXPECT_EQ(found(on_grid(12, 10, 1, unknowns, false, kAll)), unknowns);
    EXPECT_EQ(found(on_grid(7, 6, 5, unknowns, false, kAll)), unknowns);
    EXPECT_EQ(found(on_grid(60, 1, 1, unknowns, true, kAll)), unknowns);
    EXPECT_EQ(found(on_grid(7, 6, 5, unknowns, false, kAll), 60), unknowns);
    EXPECT_EQ(found(on_grid(2, 1, 1, unknowns, true, [](int dx, int, int, int, int) { return dx == 0; })), unknowns);
  }
}

TEST(NodeBlocks, WithoutTheZeros) {
  EXPECT_EQ(found(on_grid(20, 20, 1, 2, false, kUniformHexahedra)), 2);
  EXPECT_EQ(found(on_grid(9, 9, 9, 3, false, kUniformHexahedra)), 3);
  std::mt19937 random(5);
  for (const double kept : {0.95, 0.8, 0.7}) {
    SCOPED_TRACE(kept);
    std::uniform_real_distribution<double> uniform;
    const auto some = [&](int dx, int dy, int dz, int i, int j) {
      return (dx == 0 && dy == 0 && dz == 0 && i == j) || uniform(random) < kept;
    };
    EXPECT_EQ(found(on_grid(20, 20, 1, 2, false, some)), 2);
    EXPECT_EQ(found(on_grid(9, 9, 8, 3, false, some)), 3);
  }
}

TEST(NodeBlocks, KnownValuesInSomeRows) {
  Pattern pattern = on_grid(8, 8, 8, 3, false, kAll);
  std::set<std::int64_t> known;
  for (std::int64_t row = 0; row < std::ssize(pattern); ++row)
    if (row / 3 % 8 == 0 || row % 19 == 0) known.insert(row);
  for (std::int64_t row = 0; row < std::ssize(pattern); ++row) {
    auto& of_row = pattern[static_cast<std::size_t>(row)];
    if (known.count(row) > 0) of_row = {row};
    else std::erase_if(of_row, [&](std::int64_t column) { return known.count(column) > 0; });
  }
  EXPECT_EQ(found(pattern), 3);
}

TEST(NodeBlocks, LinesOfAFewNodes) {
  for (const int n : {3, 4, 5, 6}) {
    SCOPED_TRACE(n);
    EXPECT_EQ(found(on_grid(n, 6, 5, 1, false, kAll)), 1);
    EXPECT_EQ(found(on_grid(n, 6, 5, 1, true, kAll)), 1);
    EXPECT_EQ(found(on_grid(n, 6, 5, 3, false, kAll)), 3);
    EXPECT_EQ(found(on_grid(n, 30, 1, 2, false, kAll)), 2);
    EXPECT_EQ(found(on_grid(n, 30, 1, 2, false, kUniformHexahedra)), 2);
  }
}

TEST(NodeBlocks, NoneInScalarProblems) {
  EXPECT_EQ(found(on_grid(12, 10, 1, 1, true, kAll)), 1);
  EXPECT_EQ(found(on_grid(12, 10, 1, 1, false, kAll)), 1);
  EXPECT_EQ(found(on_grid(12, 12, 12, 1, true, kAll)), 1);
  EXPECT_EQ(found(on_grid(12, 12, 12, 1, false, kAll)), 1);
  EXPECT_EQ(found(on_grid(60, 1, 1, 1, true, kAll)), 1);
  EXPECT_EQ(found(on_grid(24, 10, 1, 1, true, [](int dx, int dy, int, int, int) { return dx <= 0 && dy <= 0; })), 1);
}

TEST(NodeBlocks, NoneInBandsAndDenseMatrices) {
  for (const std::int64_t rows : {12, 60, 240})
    for (const std::int64_t width : {0, 1, 2, 3, 5, 10, 30, 240}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << width);
      Pattern pattern(static_cast<std::size_t>(rows));
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = std::max<std::int64_t>(0, i - width); j <= std::min(rows - 1, i + width); ++j)
          pattern[static_cast<std::size_t>(i)].insert(j);
      EXPECT_EQ(found(pattern), 1);
    }
}

TEST(NodeBlocks, NoneInRandomMatrices) {
  std::mt19937 random(11);
  int wrong = 0, tried = 0;
  for (const std::int64_t rows : {6, 12, 60, 120, 240})
    for (const double density : {0.02, 0.1, 0.3, 0.6, 0.8, 0.95})
      for (int trial = 0; trial < 20; ++trial) {
        std::uniform_real_distribution<double> uniform;
        Pattern pattern(static_cast<std::size_t>(rows));
        for (std::int64_t i = 0; i < rows; ++i) {
          pattern[static_cast<std::size_t>(i)].insert(i);
          for (std::int64_t j = 0; j < rows; ++j)
            if (uniform(random) < density) pattern[static_cast<std::size_t>(i)].insert(j);
        }
        ++tried;
        if (found(pattern) != 1) {
          ++wrong;
          EXPECT_LE(rows, 12) << "density " << density;
        }
      }
  EXPECT_LE(wrong, tried / 100);  // a few of the smallest have blocks by chance
}

TEST(NodeBlocks, SampleOfALargeMatrix) {
  const auto ranges = node_block_samples(1'000'000);
  EXPECT_EQ(std::ssize(ranges), 16);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    EXPECT_EQ(ranges[i].begin % 60, 0);
    EXPECT_LE(ranges[i].end, 1'000'000);
    EXPECT_GE(ranges[i].begin, i == 0 ? 0 : ranges[i - 1].end);
  }
  EXPECT_TRUE(node_block_samples(0).empty());
  EXPECT_EQ(node_block_samples(4801).back().end, 4800);
}

}  // namespace
}  // namespace shardmat
