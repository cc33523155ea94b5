// A matrix built by hand against a std::map of its entries.
#include "kernels/matrix/dok.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>

#include "kernels/base/error.h"
#include "tests/support/matrix_zoo.h"

namespace shardmat {
namespace {

TEST(DokMatrix, InsertsAddsAndErasesInAnyOrder) {
  constexpr std::int64_t kRows = 40, kCols = 25;
  DokMatrix dok(kRows, kCols);
  std::map<std::pair<std::int64_t, std::int64_t>, double> expected;
  std::mt19937 random(7);
  for (int step = 0; step < 5000; ++step) {
    const std::int64_t row = random() % kRows, column = random() % kCols;
    const double value = static_cast<double>(random() % 100) / 8;
    switch (random() % 3) {
      case 0:
        dok.insert(row, column, value), expected[{row, column}] = value;
        break;
      case 1:
        dok.add(row, column, value), expected[{row, column}] += value;
        break;
      default:
        EXPECT_EQ(dok.erase(row, column), expected.erase(std::pair(row, column)) > 0);
    }
    EXPECT_EQ(dok.contains(row, column), expected.contains(std::pair(row, column)));
    const auto found = expected.find({row, column});
    EXPECT_EQ(dok.at(row, column), found == expected.end() ? 0 : found->second);
  }
  const HostCsr csr = dok.to_csr();
  EXPECT_NO_THROW(validate(csr.view()));
  EXPECT_EQ(csr.nnz(), std::ssize(expected));
  EXPECT_EQ(dok.nnz(), csr.nnz());
  auto next = expected.begin();
  for (std::int64_t row = 0; row < kRows; ++row)
    for (std::int64_t k = csr.row_ptr[row]; k < csr.row_ptr[row + 1]; ++k, ++next) {
      EXPECT_EQ(next->first, std::pair(row, csr.col_idx[k]));
      EXPECT_EQ(next->second, csr.values[k]);
    }
}

TEST(DokMatrix, ComesFromAndGoesToEveryCsr) {
  for (const test::NamedMatrix& zoo : test::matrix_zoo()) {
    const HostCsr back = DokMatrix(zoo.matrix.view()).to_csr();
    EXPECT_EQ(back.rows, zoo.matrix.rows);
    EXPECT_EQ(back.cols, zoo.matrix.cols);
    EXPECT_EQ(back.row_ptr, zoo.matrix.row_ptr) << zoo.name;
    EXPECT_EQ(back.col_idx, zoo.matrix.col_idx) << zoo.name;
    EXPECT_EQ(back.values, zoo.matrix.values) << zoo.name;
  }
}

TEST(DokMatrix, NamesPlacesOutsideIt) {
  DokMatrix dok(3, 4);
  EXPECT_THROW(DokMatrix(-1, 4), Error);
  EXPECT_THROW(dok.add(3, 0, 1), Error);
  EXPECT_THROW(dok.erase(0, -1), Error);
  try {
    dok.insert(2, 4, 1);
    FAIL() << "column 4 of 4";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_STREQ(error.what(), "entry (2, 4) lies outside the matrix of 3 × 4");
  }
  EXPECT_EQ(dok.nnz(), 0);
}

}  // namespace
}  // namespace shardmat
