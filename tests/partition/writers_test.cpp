#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "partition/readers/reader.h"
#include "partition/source/permuted_source.h"
#include "partition/writers/writer.h"
#include "tests/partition/readers/test_files.h"
#include "tests/partition/test_matrices.h"

namespace shardmat {
namespace {

using test::error_of;
using test::FilesTest;

std::string name_for(const Writer& writer) { return std::string("a").append(writer.suffix); }

class Writers : public FilesTest {
 protected:
  void expect_back(const HostCsr& matrix, bool all = true) {
    for (const Writer& writer : writers()) {
      if (!all && (writer.name == "hypre-ij" || writer.name == "matlab")) continue;
      const auto name = path(name_for(writer));
      write_matrix(name, *test::source_of(matrix));
      test::expect_same(read_matrix(name, {true, {}}), matrix);
    }
  }
};

TEST_F(Writers, WhatIsWrittenIsReadBitForBit) {
  expect_back(test::random_matrix(300, 200, 40, 1));
  expect_back(test::random_matrix(50, 1000, 3, 2));
  expect_back(test::from_rows(3, {}));
  expect_back(test::from_rows(3, {{}, {}}));
  expect_back(test::from_rows(1, {{}, {{0, 0.1}}, {}}));
  constexpr double kLeast = std::numeric_limits<double>::denorm_min(), kMost = std::numeric_limits<double>::max();
  expect_back(test::from_rows(5, {{{0, kLeast}, {1, -kMost}, {2, 0}, {3, 1.0 / 3}, {4, -123456789012345678}},
                                  {{0, std::numeric_limits<double>::infinity()}}}));
}

TEST_F(Writers, SeveralSlicesAndTasksAndARowLongerThanBoth) {
  HostCsr m;
  m.rows = 600000;
  m.cols = kSliceEntries + 100;
  for (std::int64_t i = 0; i < m.rows; ++i) {
    const std::int64_t length = i == 300000 ? kSliceEntries + 7 : i % 5;
    for (std::int64_t k = 0; k < length; ++k) {
      m.col_idx.push_back(k + i % 3);
      m.values.push_back(static_cast<double>(i + k));
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  expect_back(m, false);  // the others go through the same slices
}

TEST_F(Writers, SortedRowsAreWrittenInTheirOriginalOrder) {
  for (const std::int64_t cols : {90, 120}) {
    const HostCsr m = test::random_matrix(120, cols, 11, 9);
    const auto source = test::source_of(m);
    const auto sorted = make_length_sorted_source(*source, m.row_ptr);
    write_matrix(path("a.mtx"), *sorted);
    test::expect_same(read_matrix(path("a.mtx")), m);
  }
}

TEST_F(Writers, UnknownsAreWrittenBesideTheMatrix) {
  const auto matrix = std::make_shared<const HostCsr>(test::from_rows(3, {{{0, 1}}, {{0, 2}, {1, 3}, {2, 4}}, {{2, 5}}}));
  const auto list = std::make_shared<const UnknownList>(UnknownList{{-7, 11}, {5, 1}, {9000000000, 0}});
  const auto source = make_memory_source(matrix, "test", list);
  const auto sorted = make_length_sorted_source(*source, matrix->row_ptr);
  EXPECT_EQ(sorted->unknowns(), list);
  for (const Writer& writer : writers()) {
    write_matrix(path(name_for(writer)), *sorted);
    EXPECT_EQ(test::bytes_of(path(name_for(writer) + ".dof")), "-7.11\n5.1\n9000000000.0\n");
  }
}

TEST_F(Writers, UnknownSuffixesAreNamed) {
  const auto source = test::source_of(test::random_matrix(5, 5, 2, 1));
  const std::string message = error_of([&] { write_matrix(path("a.txt"), *source); }, ErrorKind::usage);
  EXPECT_SAYS(message, "a.txt", ".mtx, .npz");
}

TEST_F(Writers, AFullDiskIsAnErrorAndLeavesNothing) {
  const auto source = test::source_of(test::random_matrix(20000, 20000, 40, 1));
  for (const Writer& writer : writers()) {
    const std::string name = name_for(writer);
    const test::SmallDisk disk(1 << 20);
    EXPECT_SAYS(error_of([&] { write_matrix(path(name), *source); }, ErrorKind::resources), name);
    EXPECT_TRUE(std::filesystem::is_empty(path("")));
  }
}

class FailingSource final : public RowSource {
 public:
  std::int64_t rows() const override { return 10; }
  std::int64_t cols() const override { return 10; }
  std::string name() const override { return "failing"; }
  HostVector<std::int64_t> row_lengths(std::int64_t begin, std::int64_t end) const override {
    return HostVector<std::int64_t>(static_cast<std::size_t>(end - begin), 1);
  }
  HostCsr read_rows(std::int64_t, std::int64_t) const override { throw Error(ErrorKind::input, "row 3 is damaged"); }
};

TEST_F(Writers, ErrorsOfTheSourceComeThroughAndLeaveNothing) {
  for (const Writer& writer : writers()) {
    EXPECT_SAYS(error_of([&] { write_matrix(path(name_for(writer)), FailingSource()); }), "row 3 is damaged");
    EXPECT_TRUE(std::filesystem::is_empty(path("")));
  }
}

}  // namespace
}  // namespace shardmat
