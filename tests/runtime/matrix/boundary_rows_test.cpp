#include "runtime/matrix/boundary_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/matrix/csr.h"

namespace shardmat {
namespace {

/// `rows` rows with a diagonal entry each, those in `foreign` with one of column 1000, too; this rank owns [0, rows).
HostCsr diagonal(std::int64_t rows, const std::vector<std::int64_t>& foreign) {
  HostCsr m;
  m.rows = rows, m.cols = 1001;
  for (std::int64_t i = 0; i < rows; ++i) {
    m.col_idx.push_back(i);
    m.values.push_back(static_cast<double>(i));
    if (std::find(foreign.begin(), foreign.end(), i) != foreign.end()) m.col_idx.push_back(1000), m.values.push_back(0.5);
    m.row_ptr.push_back(std::ssize(m.col_idx));
  }
  return m;
}

std::vector<std::int64_t> range(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(last - first));
  std::iota(all.begin(), all.end(), first);
  return all;
}

void expect_moved(const HostCsr& rows, const BoundaryRows& boundary, ValueType type = ValueType::f64) {
  CompactCsr m(rows.view(), type);
  const auto order = boundary.order();
  ASSERT_EQ(std::ssize(order), m.rows);
  move_boundary_last(m, boundary);
  validate(m.view());
  for (std::size_t i = 0; i < order.size(); ++i)
    EXPECT_EQ(m.values()[static_cast<std::size_t>(m.row_ptr[i])], static_cast<double>(order[i]));
}

TEST(BoundaryRows, MoveLastThoseOfTheSecondHalfFirst) {
  const HostCsr m = diagonal(100, {13, 49, 50, 98, 99});
  const BoundaryRows boundary = find_boundary_rows(m.view(), 0, 100);
  EXPECT_EQ(boundary.rows, 5);
  EXPECT_EQ(boundary.nnz, 10);
  const auto order = boundary.order();
  EXPECT_EQ(std::vector<std::int64_t>(order.end() - 5, order.end()), (std::vector<std::int64_t>{50, 98, 99, 13, 49}));
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end() - 5));
  expect_moved(m, boundary);
  expect_moved(m, boundary, ValueType::f32);
}

TEST(BoundaryRows, NoneWhereNothingIsNeeded) {
  const HostCsr m = diagonal(40, {});
  const BoundaryRows boundary = find_boundary_rows(m.view(), 0, 40);
  EXPECT_EQ(boundary.rows, 0);
  EXPECT_EQ(boundary.nnz, 0);
}

TEST(BoundaryRows, AllOrNoRows) {
  const HostCsr all = diagonal(5, range(0, 5));
  EXPECT_EQ(find_boundary_rows(all.view(), 0, 5).rows, 5);
  expect_moved(all, find_boundary_rows(all.view(), 0, 5));
  EXPECT_EQ(find_boundary_rows(diagonal(0, {}).view(), 0, 0).rows, 0);
}

}  // namespace
}  // namespace shardmat
