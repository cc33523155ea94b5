// The guide of the course text "Parallel patterns: sparse computation", class by class.
#include "kernels/choose/format_guide.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>

#include "kernels/choose/registry.h"
#include "tests/support/matrix_zoo.h"

namespace shardmat {
namespace {

constexpr std::string_view kAll[] = {"coo", "csr",   "csc", "ell",  "ell_r", "hyb",
                                     "jds", "jds_t", "dia", "bcsr", "sell",  "packed"};

HostCsr build(std::int64_t rows, std::int64_t cols, const std::function<std::set<std::int64_t>(std::int64_t)>& columns_of) {
  HostCsr m;
  m.rows = rows;
  m.cols = cols;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (const std::int64_t column : columns_of(i)) {
      if (column < 0 || column >= cols) continue;
      m.col_idx.push_back(column);
      m.values.push_back(1);
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  return m;
}

std::set<std::int64_t> scattered(std::int64_t row, std::int64_t count, std::int64_t cols) {
  std::set<std::int64_t> columns;
  for (std::uint64_t k = 0; static_cast<std::int64_t>(columns.size()) < count; ++k)
    columns.insert(static_cast<std::int64_t>((test::value_of(static_cast<std::uint64_t>(row) * 7919 + k) + 1) / 2 *
                                             static_cast<double>(cols)));
  return columns;
}

Recommendation recommend(const HostCsr& m, std::span<const std::string_view> available = kAll) {
  PatternScan scan(m.rows, m.cols);
  scan.add(0, m.view());
  return recommended_format(scan.result(), row_statistics(m.row_ptr), available);
}

/// Each entry is there with this probability, so that row lengths are binomial; in the lower triangle alone if asked for.
HostCsr at_random(std::int64_t n, double share, bool lower, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::bernoulli_distribution is_there(share);
  return build(n, n, [&](std::int64_t i) {
    std::set<std::int64_t> columns;
    for (std::int64_t j = 0; j < (lower ? i + 1 : n); ++j)
      if (is_there(random)) columns.insert(j);
    return columns;
  });
}

/// The text's examples. The longest of 1,000 binomial rows of mean 10 has 2.0 to 2.4 times as many entries.
TEST(FormatGuide, TakesEllForRandomRowsAndJdsForTriangles) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    EXPECT_EQ(recommend(at_random(1000, 0.01, false, seed)).format, "ell") << seed;
    EXPECT_EQ(recommend(at_random(1000, 0.05, false, seed)).format, "ell") << seed;
    EXPECT_EQ(recommend(at_random(1000, 0.02, true, seed)).format, "jds_t") << seed;
  }
}

TEST(FormatGuide, EveryClassHasItsFormat) {
  constexpr std::int64_t n = 2000;
  EXPECT_EQ(recommend(build(n, n, [](std::int64_t i) { return scattered(i, 12, n); })).format, "ell") << "random";
  EXPECT_EQ(recommend(build(n, n, [](std::int64_t i) { return scattered(i, 3 + 1500 / (i + 1), n); })).format, "hyb")
      << "uneven";
  EXPECT_EQ(recommend(build(n, n, [](std::int64_t i) { return scattered(i, i % 7 == 0, n); })).format, "coo")
      << "very sparse";
  EXPECT_EQ(recommend(build(n, n,
                            [](std::int64_t i) {
                              auto columns = scattered(i, 9, 61);
                              std::set<std::int64_t> band;
                              for (const std::int64_t c : columns) band.insert(i + c - 30);
                              return band;
                            }))
                .format,
            "ell")
      << "banded";
  EXPECT_EQ(recommend(build(n, n, [](std::int64_t i) { return std::set<std::int64_t>{i}; })).format, "dia") << "diagonal";
  EXPECT_EQ(recommend(build(n, n,
                            [](std::int64_t i) {
                              return std::set<std::int64_t>{i - 40, i - 1, i, i + 1, i + 40};
                            }))
                .format,
            "dia")
      << "strictly banded";
  EXPECT_EQ(recommend(build(n, n, [](std::int64_t i) { return scattered(i, 1 + i / 40, i + 1); })).format, "jds_t")
      << "triangular";
  EXPECT_EQ(recommend(build(n, n, [](std::int64_t i) { return scattered(i, i % 500 == 0 ? 40 : 20, n); })).format, "ell");
  EXPECT_EQ(recommend(build(n, n, [](std::int64_t i) { return scattered(i, i % 500 == 0 ? 90 : 20, n); })).format, "sell")
      << "a few rows longer";
  for (const test::NamedMatrix& zoo : test::matrix_zoo())
    if (zoo.name == "node blocks") {
      const Recommendation blocks = recommend(zoo.matrix);
      EXPECT_EQ(blocks.format, "bcsr");
      EXPECT_NE(blocks.reason.find("3 × 3 blocks are 100 % full"), std::string::npos) << blocks.reason;
    }
}

std::set<std::int64_t> from_to(std::int64_t first, std::int64_t last) {
  std::set<std::int64_t> columns;
  for (std::int64_t c = first; c <= last; ++c) columns.insert(c);
  return columns;
}

TEST(FormatGuide, ADenseBandTakesEllUnlessItConsistsOfSmallerBlocks) {
  constexpr std::int64_t n = 3000;
  const Recommendation band = recommend(build(n, n, [](std::int64_t i) { return from_to(i - 16, i + 16); }));
  EXPECT_EQ(band.format, "ell");
  EXPECT_NE(band.reason.find("dense band of 16 below and 16 above the diagonal, 100 % full"), std::string::npos)
      << band.reason;
  const auto holes = [](double kept) {
    return build(n, n, [=](std::int64_t i) {
      std::set<std::int64_t> columns{i - 20, i, i + 20};
      for (const std::int64_t c : from_to(i - 20, i + 20))
        if ((test::value_of(static_cast<std::uint64_t>(i * 100 + c)) + 1) / 2 < kept) columns.insert(c);
      return columns;
    });
  };
  EXPECT_NE(recommend(holes(0.8)).reason.find("dense band"), std::string::npos);
  EXPECT_EQ(recommend(holes(0.6)).reason.find("dense band"), std::string::npos);
  // Block tridiagonal: a band of 5 on either side that is 82 % full, in blocks of 3 × 3.
  const Recommendation blocks = recommend(build(n, n, [](std::int64_t i) { return from_to(i / 3 * 3 - 3, i / 3 * 3 + 5); }));
  EXPECT_EQ(blocks.format, "bcsr");
  EXPECT_NE(blocks.reason.find("3 × 3"), std::string::npos) << blocks.reason;
}

TEST(FormatGuide, TakesWhatThereIs) {
  const HostCsr diagonal = build(100, 100, [](std::int64_t i) { return std::set<std::int64_t>{i}; });
  constexpr std::string_view kLittle[] = {"csr", "sell"};
  EXPECT_EQ(recommend(diagonal, kLittle).format, "csr");
  EXPECT_NE(recommend(diagonal, kLittle).reason.find("dia"), std::string::npos);
  EXPECT_EQ(recommend(build(500, 500, [](std::int64_t i) { return scattered(i, 12, 500); }), kLittle).format, "sell");
}

TEST(FormatGuide, SaysSomethingOfEveryMatrixAndNamesARegisteredFormat) {
  for (const test::NamedMatrix& zoo : test::matrix_zoo()) {
    PatternScan scan(zoo.matrix.rows, zoo.matrix.cols);
    scan.add(0, zoo.matrix.view());
    const Recommendation found = recommended_format(scan.result(), row_statistics(zoo.matrix.row_ptr));
    EXPECT_NO_THROW(find_format(found.format)) << zoo.name;
    EXPECT_FALSE(found.reason.empty());
    EXPECT_EQ(found.reason.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace shardmat
