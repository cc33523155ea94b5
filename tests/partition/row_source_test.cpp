#include "partition/source/row_source.h"

#include <gtest/gtest.h>

#include "kernels/base/error.h"
#include "partition/source/permuted_source.h"
#include "tests/partition/test_matrices.h"

namespace shardmat {
namespace {

/// Reads a source range by range, of `step` rows, and joins the ranges.
HostCsr read_in_steps(const RowSource& source, std::int64_t step) {
  HostCsr all;
  all.rows = source.rows();
  all.cols = source.cols();
  for (std::int64_t begin = 0; begin < source.rows(); begin += step) {
    const HostCsr part = source.read_rows(begin, std::min(source.rows(), begin + step));
    const std::int64_t before = all.row_ptr.back();
    for (std::int64_t i = 1; i <= part.rows; ++i) all.row_ptr.push_back(before + part.row_ptr[static_cast<std::size_t>(i)]);
    all.col_idx.insert(all.col_idx.end(), part.col_idx.begin(), part.col_idx.end());
    all.values.insert(all.values.end(), part.values.begin(), part.values.end());
  }
  return all;
}

TEST(MemorySource, GivesRangesAndLengths) {
  const HostCsr m = test::random_matrix(50, 40, 8, 5);
  const auto source = test::source_of(m, "bar");
  EXPECT_EQ(source->name(), "bar");
  EXPECT_TRUE(test::same(read_in_steps(*source, 7), m));
  const auto lengths = source->row_lengths(3, 9);
  for (std::size_t i = 0; i < lengths.size(); ++i) EXPECT_EQ(lengths[i], m.row_ptr[i + 4] - m.row_ptr[i + 3]);
  EXPECT_TRUE(source->row_lengths(4, 4).empty());
  EXPECT_EQ(source->read_rows(50, 50).rows, 0);
  EXPECT_THROW(source->read_rows(0, 51), Error);
  EXPECT_FALSE(source->permuted());
  EXPECT_EQ(source->permutation(3, 5), (HostVector<std::int64_t>{3, 4}));
}

TEST(MemorySource, VisitShowsTheSameRowsAsRead) {
  const HostCsr m = test::random_matrix(50, 40, 8, 5);
  const auto source = test::source_of(m);
  source->visit_rows(10, 20, [&](const CsrView& view) {
    const HostCsr read = source->read_rows(10, 20);
    ASSERT_EQ(view.rows, 10);
    ASSERT_EQ(view.nnz(), read.nnz());
    EXPECT_TRUE(std::equal(view.col_idx.begin(), view.col_idx.end(), read.col_idx.begin()));
    EXPECT_TRUE(std::equal(view.values.begin(), view.values.end(), read.values.begin()));
    EXPECT_EQ(view.row_ptr[3] - view.row_ptr[0], read.row_ptr[3]);
  });
}

TEST(MemorySource, ReadsRowsIntoArrays) {
  test::expect_reads_into(*test::source_of(test::random_matrix(50, 40, 8, 5)), test::random_matrix(50, 40, 8, 5));
  test::expect_reads_into(*test::source_of(test::from_rows(3, {})), test::from_rows(3, {}));
}

TEST(MemorySource, ReadingIntoArraysRefusesValuesOutOfRange) {
  const HostCsr m = test::from_rows(4, {{{0, 1}}, {}, {{1, 2}, {3, -1e39}}});
  const auto source = test::source_of(m, "bar");
  EXPECT_EQ(test::read_into(*source, 0, {0, 1, 2}, {false, true}).values, m.values);
  try {
    test::read_into(*source, 0, {2, 0, 1}, {false, false});
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input);
    EXPECT_NE(std::string(e.what()).find("entry 2 of the values of bar is -1e+39"), std::string::npos) << e.what();
  }
}

TEST(Slices, CoverAllRowsInOrder) {
  const HostCsr m = test::random_matrix(500, 40, 8, 5);
  std::int64_t next = 3, nnz = 0;
  for_each_row_slice(*test::source_of(m), 3, 500, [&](std::int64_t first, const CsrView& rows) {
    EXPECT_EQ(first, next);
    next += rows.rows;
    nnz += rows.nnz();
  });
  EXPECT_EQ(next, 500);
  EXPECT_EQ(nnz, m.nnz() - m.row_ptr[3]);
}

TEST(Slices, BeginAtMultiplesWhereAsked) {
  HostCsr m{100, kSliceEntries, {0}, {}, {}};
  for (std::int64_t i = 0; i < m.rows; ++i) {
    for (std::int64_t k = 0; k < (i % 40 == 3 ? kSliceEntries / 2 + 1 : 1); ++k) m.col_idx.push_back(k);
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  m.values.resize(m.col_idx.size());
  std::int64_t next = 0, slices = 0;
  for_each_row_slice(
      *test::source_of(m), 0, m.rows,
      [&](std::int64_t first, const CsrView& rows) {
        EXPECT_EQ(first, next);
        EXPECT_EQ(first % 12, 0);
        next += rows.rows;
        ++slices;
      },
      12);
  EXPECT_EQ(next, m.rows);
  EXPECT_EQ(slices, 2);
}

class LengthSorted : public testing::TestWithParam<std::int64_t> {};

TEST_P(LengthSorted, IsAPermutationThatSquareMatricesShareWithTheirColumns) {
  const std::int64_t rows = 120, cols = GetParam();
  const HostCsr m = test::random_matrix(rows, cols, 11, 9);
  const auto source = test::source_of(m);
  const auto sorted = make_length_sorted_source(*source, m.row_ptr);
  const auto order = sorted->permutation(0, rows);
  const HostCsr whole = sorted->read_rows(0, rows);
  validate(whole.view());
  EXPECT_TRUE(sorted->permuted());
  EXPECT_TRUE(test::same(read_in_steps(*sorted, 13), whole));
  const auto lengths = sorted->row_lengths(0, rows);
  EXPECT_TRUE(std::is_sorted(lengths.rbegin(), lengths.rend()));
  for (std::int64_t i = 0; i < rows; ++i) {
    const HostCsr old = source->read_rows(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(i)] + 1);
    std::vector<std::pair<std::int64_t, double>> expected, found;
    for (std::size_t k = 0; k < old.values.size(); ++k) expected.emplace_back(old.col_idx[k], old.values[k]);
    for (auto k = static_cast<std::size_t>(whole.row_ptr[static_cast<std::size_t>(i)]);
         k < static_cast<std::size_t>(whole.row_ptr[static_cast<std::size_t>(i) + 1]); ++k) {
      const std::int64_t column = whole.col_idx[k];
      found.emplace_back(rows == cols ? order[static_cast<std::size_t>(column)] : column, whole.values[k]);
    }
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, expected) << "row " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, LengthSorted, testing::Values(120, 40, 300));

TEST(LengthSorted, SortingTwiceKeepsTheOriginalRows) {
  const HostCsr m = test::random_matrix(60, 60, 11, 9);
  const auto source = test::source_of(m);
  const auto once = make_length_sorted_source(*source, m.row_ptr);
  const HostCsr once_rows = once->read_rows(0, 60);
  const auto twice = make_length_sorted_source(*once, once_rows.row_ptr);
  EXPECT_EQ(twice->permutation(0, 60), once->permutation(0, 60));
  EXPECT_TRUE(test::same(twice->read_rows(0, 60), once_rows));
}

}  // namespace
}  // namespace shardmat
