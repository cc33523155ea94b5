#include "partition/source/partitioner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <string>

#include "kernels/base/error.h"
#include "tests/partition/test_matrices.h"

namespace shardmat {
namespace {

using Numbers = std::vector<std::int64_t>;

Numbers prefix_of(const Numbers& lengths, std::int64_t first = 0) {
  Numbers prefix{first};
  for (const std::int64_t length : lengths) prefix.push_back(prefix.back() + length);
  return prefix;
}

std::int64_t heaviest(const Numbers& prefix, const Numbers& starts) {
  std::int64_t most = 0;
  for (std::size_t p = 0; p + 1 < starts.size(); ++p)
    most = std::max(most, prefix[static_cast<std::size_t>(starts[p + 1])] - prefix[static_cast<std::size_t>(starts[p])]);
  return most;
}

/// The best bottleneck over all contiguous splits, by dynamic programming over every boundary.
std::int64_t best_by_brute_force(const Numbers& prefix, int parts) {
  const std::size_t rows = prefix.size() - 1;
  Numbers best(rows + 1, std::numeric_limits<std::int64_t>::max());
  best[0] = 0;
  for (int part = 0; part < parts; ++part) {
    Numbers next(rows + 1, std::numeric_limits<std::int64_t>::max());
    for (std::size_t end = 0; end <= rows; ++end)
      for (std::size_t begin = 0; begin <= end; ++begin)
        next[end] = std::min(next[end], std::max(best[begin], prefix[end] - prefix[begin]));
    best = next;
  }
  return best[rows];
}

void expect_valid(const Numbers& starts, std::int64_t rows, int parts) {
  ASSERT_EQ(starts.size(), static_cast<std::size_t>(parts) + 1);
  EXPECT_EQ(starts.front(), 0);
  EXPECT_EQ(starts.back(), rows);
  EXPECT_TRUE(std::is_sorted(starts.begin(), starts.end()));
  if (rows >= parts) {
    EXPECT_EQ(std::adjacent_find(starts.begin(), starts.end()), starts.end()) << "a part is empty without need";
  }
}

TEST(Partitioner, BottleneckIsOptimalOnRandomMatrices) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 3000; ++trial) {
    Numbers lengths(random() % 14);
    const auto kind = random() % 3;
    for (std::int64_t& length : lengths)
      length = kind == 0 ? random() % 5 : kind == 1 ? (random() % 3 ? 0 : random() % 100) : 1 + random() % 1000;
    const Numbers prefix = prefix_of(lengths, random() % 2 ? 0 : 12345);
    const int parts = 1 + static_cast<int>(random() % 8);
    const Partition p = make_partition("nnz", prefix, parts);
    expect_valid(p.row_starts, static_cast<std::int64_t>(lengths.size()), parts);
    ASSERT_EQ(heaviest(prefix, p.row_starts), best_by_brute_force(prefix, parts)) << testing::PrintToString(lengths);
  }
}

TEST(Partitioner, EvenAmongOptimalSplits) {
  // The bottleneck of 100 permits many splits of the ones; a greedy one would leave the last parts nearly
  // empty.
  Numbers lengths(301, 1);
  lengths[0] = 100;
  const Partition p = make_partition("nnz", prefix_of(lengths), 7);
  for (std::size_t part = 1; part < 7; ++part) EXPECT_EQ(p.row_starts[part + 1] - p.row_starts[part], 50);
}

TEST(Partitioner, OneRowHeavierThanAllOthers) {
  const Numbers prefix = prefix_of({1, 1, 1000, 1, 1});
  EXPECT_EQ(heaviest(prefix, make_partition("nnz", prefix, 3).row_starts), 1000);
  EXPECT_EQ(make_partition("nnz", prefix, 3).row_starts, (Numbers{0, 2, 3, 5}));
}

TEST(Partitioner, MorePartsThanRowsAndNoRows) {
  EXPECT_EQ(make_partition("nnz", prefix_of({3, 4}), 4).row_starts, (Numbers{0, 1, 2, 2, 2}));
  EXPECT_EQ(make_partition("rows", prefix_of({3, 4}), 4).row_starts, (Numbers{0, 1, 2, 2, 2}));
  EXPECT_EQ(make_partition("nnz", Numbers{0}, 3).row_starts, (Numbers{0, 0, 0, 0}));
  EXPECT_EQ(make_partition("rows", Numbers{0}, 3).row_starts, (Numbers{0, 0, 0, 0}));
}

TEST(Partitioner, EmptyRowsAreSpreadEvenly) {
  EXPECT_EQ(make_partition("nnz", prefix_of(Numbers(8, 0)), 4).row_starts, (Numbers{0, 2, 4, 6, 8}));
}

TEST(Partitioner, ManyRowsAndParts) {
  std::mt19937 random(3);
  Numbers lengths(200000);
  for (std::int64_t& length : lengths) length = random() % 50;
  const Numbers prefix = prefix_of(lengths);
  for (const int parts : {1, 2, 7, 64, 1000}) {
    const Partition p = make_partition("nnz", prefix, parts);
    expect_valid(p.row_starts, 200000, parts);
    const std::int64_t share = prefix.back() / parts;
    EXPECT_LT(heaviest(prefix, p.row_starts), share + share / 2'000 + 50);
  }
}

TEST(Partitioner, LargePartsKeepTwelveRowsTogether) {
  const Numbers prefix = prefix_of(Numbers(1'000'001, 81));
  for (const int parts : {2, 3, 7}) {
    const Partition p = make_partition("nnz", prefix, parts);
    expect_valid(p.row_starts, 1'000'001, parts);
    for (std::size_t i = 0; i < static_cast<std::size_t>(parts); ++i) EXPECT_EQ(p.row_starts[i] % 12, 0);
    const std::int64_t share = prefix.back() / parts;
    EXPECT_LE(heaviest(prefix, p.row_starts), share + share / 2'000 + 81);
  }
}

TEST(Partitioner, LargePartsEndWithWholeLines) {
  Numbers lengths(4'096'000, 27);  // a grid with lines of 256 rows
  for (std::size_t row = 0; row < lengths.size(); ++row)
    if (row % 256 == 0 || row % 256 == 255) lengths[row] = 18;
  const Partition p = make_partition("nnz", prefix_of(lengths), 3);
  expect_valid(p.row_starts, 4'096'000, 3);
  for (const std::int64_t start : p.row_starts) EXPECT_EQ(start % 256, 0) << start;
}

TEST(Partitioner, LargePartsKeepTwelveRowsTogetherWhereTheNextTwelveAreTooHeavy) {
  Numbers lengths(200'000, 3);
  lengths.resize(201'500, 400);
  EXPECT_EQ(make_partition("nnz", prefix_of(lengths), 2).row_starts[1], 199'992);
}

/// The heaviest part holds no more than the best cuts at nodes, and so at most a node more than the best cuts at rows.
TEST(Partitioner, NodesStayWhole) {
  std::mt19937 random(9);
  for (int trial = 0; trial < 2000; ++trial) {
    const auto size = static_cast<std::int64_t>(1 + random() % 6);
    Numbers lengths, of_nodes;
    for (std::size_t node = 0; node < random() % 6 + 1; ++node) {
      of_nodes.push_back(0);
      for (std::int64_t i = 0; i < size; ++i) lengths.push_back(random() % 40), of_nodes.back() += lengths.back();
    }
    const int parts = 1 + static_cast<int>(random() % 5);
    const Numbers prefix = prefix_of(lengths);
    for (const char* method : {"nnz", "rows"}) {
      const Partition p = make_partition(method, prefix, parts, size);
      ASSERT_EQ(p.row_starts.back(), std::ssize(lengths));
      for (const std::int64_t start : p.row_starts) ASSERT_EQ(start % size, 0);
      if (std::string(method) == "rows") continue;
      const std::int64_t heaviest_part = heaviest(prefix, p.row_starts);
      ASSERT_EQ(heaviest_part, best_by_brute_force(prefix_of(of_nodes), parts));
      ASSERT_LE(heaviest_part, best_by_brute_force(prefix, parts) + *std::max_element(of_nodes.begin(), of_nodes.end()));
    }
    EXPECT_EQ(make_partition("nnz", prefix, parts, 0).row_starts, make_partition("nnz", prefix, parts).row_starts);
  }
  EXPECT_THROW(make_partition("nnz", prefix_of(Numbers(10, 1)), 2, 4), Error);
  EXPECT_THROW(make_partition("nnz", prefix_of(Numbers(10, 1)), 2, -1), Error);
}

TEST(Partitioner, RowsAreEven) {
  EXPECT_EQ(make_partition("rows", prefix_of({9, 0, 0, 0, 0, 0, 0}), 3).row_starts, (Numbers{0, 3, 5, 7}));
  EXPECT_EQ(even_starts(7, 3), (Numbers{0, 3, 5, 7}));
}

TEST(Partitioner, RefusesUnknownMethodAndNoParts) {
  try {
    make_partition("nzz", Numbers{0}, 2);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(e.what()).find("did you mean 'nnz'"), std::string::npos) << e.what();
  }
  EXPECT_THROW(make_partition("nnz", Numbers{0}, 0), Error);
}

/// What each part needs of others, with sets.
struct Needs {
  Numbers halo, neighbours, boundary_nnz, sent;
};
Needs needs_by_sets(const HostCsr& m, const Partition& partition) {
  const auto columns = column_starts(partition, m.cols);
  Needs needs;
  needs.sent.resize(columns.size() - 1);
  for (std::size_t p = 0; p + 1 < partition.row_starts.size(); ++p) {
    std::set<std::int64_t> remote, owners;
    std::int64_t boundary = 0;
    for (auto row = static_cast<std::size_t>(partition.row_starts[p]);
         row < static_cast<std::size_t>(partition.row_starts[p + 1]); ++row) {
      bool foreign = false;
      for (auto k = m.row_ptr[row]; k < m.row_ptr[row + 1]; ++k) {
        const std::int64_t column = m.col_idx[static_cast<std::size_t>(k)];
        if (column >= columns[p] && column < columns[p + 1]) continue;
        foreign = true;
        const bool first = remote.insert(column).second;
        std::size_t owner = 0;
        while (column >= columns[owner + 1]) ++owner;
        owners.insert(static_cast<std::int64_t>(owner));
        if (first) ++needs.sent[owner];
      }
      if (foreign) boundary += m.row_ptr[row + 1] - m.row_ptr[row];
    }
    needs.halo.push_back(std::ssize(remote));
    needs.neighbours.push_back(std::ssize(owners));
    needs.boundary_nnz.push_back(boundary);
  }
  return needs;
}

TEST(PartitionQuality, NeedsMatchSets) {
  const auto most = [](const Numbers& numbers) { return *std::max_element(numbers.begin(), numbers.end()); };
  for (const std::int64_t cols : {60, 200, 17}) {
    const HostCsr m = test::random_matrix(60, cols, 9, static_cast<unsigned>(cols));
    for (const int parts : {1, 3, 8, 70}) {
      const Partition partition = make_partition("nnz", m.row_ptr, parts);
      const PartitionQuality q = evaluate(*test::source_of(m), partition);
      const Needs needs = needs_by_sets(m, partition);
      EXPECT_EQ(q.halo_max, most(needs.halo));
      EXPECT_EQ(q.halo_total, std::accumulate(needs.halo.begin(), needs.halo.end(), std::int64_t{0}));
      EXPECT_EQ(q.neighbours_max, most(needs.neighbours));
      EXPECT_EQ(q.sent_max, most(needs.sent));
      EXPECT_EQ(q.boundary_nnz_max, most(needs.boundary_nnz));
      EXPECT_EQ(q.nnz_max, heaviest({m.row_ptr.begin(), m.row_ptr.end()}, partition.row_starts));
      EXPECT_DOUBLE_EQ(q.imbalance, static_cast<double>(q.nnz_max) * parts / static_cast<double>(m.nnz()));
      EXPECT_DOUBLE_EQ(q.rows_mean, 60.0 / parts);
      EXPECT_EQ(q.rows_min, parts > 60 ? 0 : q.rows_min);
      EXPECT_GE(q.rows_max, q.rows_min);
    }
  }
}

TEST(PartitionQuality, AllgatherMovesThePaddedVector) {
  const HostCsr m = test::random_matrix(10, 10, 3, 1);
  const PartitionQuality q = evaluate(*test::source_of(m), {"rows", {0, 7, 9, 10}});
  EXPECT_EQ(q.allgather_max, 14);
  EXPECT_EQ(q.allgather_total, 42);
}

TEST(PartitionQuality, EmptyMatrix) {
  const PartitionQuality q = evaluate(*test::source_of(HostCsr{}), {"nnz", {0, 0, 0}});
  EXPECT_EQ(q, (PartitionQuality{}));
}

}  // namespace
}  // namespace shardmat
