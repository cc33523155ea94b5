// rmat, banded and random.
#include <map>

#include "tests/partition/generators/matrix_checks.h"

namespace shardmat {
namespace {

TEST(RandomMatrices, AreSound) {
  for (const char* specification : {"rmat:scale=9",
                                    "rmat:scale=1",
                                    "rmat:scale=8,edge_factor=0",
                                    "rmat:scale=8,edge_factor=100,uniform",
                                    "rmat:scale=7,a=1,b=0,c=0",
                                    "rmat:scale=7,a=0,b=0,c=0",
                                    "rmat:scale=8,a=0.25,b=0.25,c=0.25,seed=3",
                                    "banded:n=500",
                                    "banded:n=500,bandwidth=0",
                                    "banded:n=10,bandwidth=100",
                                    "banded:n=700,density=0.3",
                                    "banded:n=0",
                                    "random:n=300",
                                    "random:n=200,cols=20,row_nnz=20",
                                    "random:n=200,cols=20,row_nnz=17",
                                    "random:n=50,row_nnz=0",
                                    "random:n=90,row_nnz=90,triangular",
                                    "random:n=400,row_nnz=9,triangular",
                                    "diagonals:n=500",
                                    "diagonals:n=300,count=7,spacing=60",
                                    "diagonals:n=10,count=5,spacing=100",
                                    "diagonals:n=0",
                                    "random:n=5,cols=1000000000000",
                                    "random:n=0,row_nnz=0"})
    expect_sound(*make_generator(specification));
}

TEST(RandomMatrices, SeedsMakeDifferentMatrices) {
  for (const char* name : {"rmat:scale=6", "banded:n=64", "random:n=64", "diagonals:n=64"}) {
    const std::string base = name;
    EXPECT_EQ(generate(base).values, generate(base).values);
    EXPECT_NE(generate(base).values, generate(base + ",seed=2").values);
  }
}

TEST(Rmat, HasAllItsEdges) {
  for (const char* specification : {"rmat:scale=10,uniform", "rmat:scale=10,uniform,seed=8,a=0.3,b=0.3,c=0.3"}) {
    double edges = 0;
    for (const double value : generate(specification).values) edges += value;
    EXPECT_EQ(edges, 16 * 1024);
  }
}

TEST(Rmat, QuartersAndSkewAreAsAsked) {
  const HostCsr m = generate("rmat:scale=12,uniform,a=0.5,b=0.25,c=0.15");
  double quarter[2][2] = {}, inner[2][2] = {};
  for (std::size_t i = 0; i < 4096; ++i)
    for (auto k = static_cast<std::size_t>(m.row_ptr[i]); k < static_cast<std::size_t>(m.row_ptr[i + 1]); ++k) {
      quarter[i >> 11][m.col_idx[k] >> 11] += m.values[k];
      inner[i & 1][m.col_idx[k] & 1] += m.values[k];
    }
  const double edges = 16 * 4096, expected[2][2] = {{0.5, 0.25}, {0.15, 0.1}};
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      const double spread = 5 * std::sqrt(expected[i][j] / edges);
      EXPECT_NEAR(quarter[i][j] / edges, expected[i][j], spread);
      EXPECT_NEAR(inner[i][j] / edges, expected[i][j], spread);
    }
  const HostCsr skewed = generate("rmat:scale=12");
  const HostVector<std::int64_t> lengths = make_generator("rmat:scale=12")->row_lengths(0, 4096);
  EXPECT_GT(*std::max_element(lengths.begin(), lengths.end()), 30 * skewed.nnz() / 4096);
  EXPECT_EQ(*std::min_element(lengths.begin(), lengths.end()), 0);
}

TEST(Rmat, RowsOfAGraphThatNoHostHolds) {
  const auto source = make_generator("rmat:scale=38");
  const HostCsr rows = source->read_rows(source->rows() / 3, source->rows() / 3 + 16384);
  validate(rows.view());
  EXPECT_EQ(rows.cols, std::int64_t{1} << 38);
  EXPECT_GT(rows.nnz(), 1000);
}

TEST(Banded, KeepsToTheBandAndItsDensity) {
  const HostCsr m = generate("banded:n=2000,bandwidth=20,density=0.25");
  std::int64_t off_diagonal = 0;
  for (std::int64_t i = 0; i < m.rows; ++i) {
    bool diagonal = false;
    for (auto k = m.row_ptr[static_cast<std::size_t>(i)]; k < m.row_ptr[static_cast<std::size_t>(i) + 1]; ++k) {
      const std::int64_t distance = std::abs(m.col_idx[static_cast<std::size_t>(k)] - i);
      EXPECT_LE(distance, 20);
      diagonal = diagonal || distance == 0;
      off_diagonal += distance != 0;
    }
    EXPECT_TRUE(diagonal);
  }
  EXPECT_NEAR(static_cast<double>(off_diagonal) / (2000 * 40), 0.25, 0.01);
  EXPECT_EQ(generate("banded:n=100,bandwidth=3").nnz(), 100 * 7 - 12);
}

TEST(Random, EverySetOfColumnsIsEquallyLikely) {
  for (const int row_nnz : {2, 3}) {  // the second draws the empty columns
    std::map<std::int64_t, int> seen;
    const HostCsr m = generate("random:n=20000,cols=5,row_nnz=" + std::to_string(row_nnz));
    for (std::int64_t i = 0; i < m.rows; ++i) {
      std::int64_t set = 0;
      for (std::int64_t k = i * row_nnz; k < (i + 1) * row_nnz; ++k) set |= 1 << m.col_idx[static_cast<std::size_t>(k)];
      ++seen[set];
    }
    EXPECT_EQ(seen.size(), 10u);
    for (const auto& [set, count] : seen) EXPECT_NEAR(count, 2000, 220) << set;
  }
}

TEST(Random, TriangleGrowsToRowNnz) {
  const HostCsr m = generate("random:n=1000,row_nnz=40,triangular");
  for (std::size_t i = 0; i < 1000; ++i) {
    const auto length = m.row_ptr[i + 1] - m.row_ptr[i];
    EXPECT_EQ(length, static_cast<std::int64_t>((i + 25) / 25)) << "row " << i;
    EXPECT_LE(m.col_idx[static_cast<std::size_t>(m.row_ptr[i + 1]) - 1], static_cast<std::int64_t>(i));
  }
  EXPECT_THROW(make_generator("random:n=10,cols=20,row_nnz=3,triangular"), Error);
}

TEST(Diagonals, AreWhereTheyShouldBe) {
  const HostCsr m = generate("diagonals:n=100,count=3,spacing=40");
  for (std::int64_t i = 0; i < m.rows; ++i)
    for (auto k = m.row_ptr[static_cast<std::size_t>(i)]; k < m.row_ptr[static_cast<std::size_t>(i) + 1]; ++k)
      EXPECT_EQ(std::abs(m.col_idx[static_cast<std::size_t>(k)] - i) % 40, 0);
  EXPECT_EQ(m.nnz(), 100 + 2 * 60);
  EXPECT_THROW(make_generator("diagonals:count=4"), Error);
}

}  // namespace
}  // namespace shardmat
