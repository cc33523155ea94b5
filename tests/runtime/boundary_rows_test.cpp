#include "runtime/boundary_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
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

TEST(BoundaryRows, BlocksOfRowsStayTogether) {
  HostCsr m = diagonal(40, {13});
  const BoundaryRows boundary = find_boundary_rows(m, 0, 40);
  EXPECT_EQ(boundary.rows, 12 + 4);  // rows 12 … 23, and those behind the last whole twelve
  EXPECT_EQ(boundary.nnz, 12 + 4 + 1);
  const auto order = boundary.order();
  ASSERT_EQ(std::ssize(order), 40);
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i] % 12, static_cast<std::int64_t>(i) % 12) << i;
  move_boundary_last(m, boundary);
  validate(m.view());
  ASSERT_EQ(m.rows, 40);
  for (std::size_t i = 0; i < order.size(); ++i)
    EXPECT_EQ(m.values[static_cast<std::size_t>(m.row_ptr[i])], static_cast<double>(order[i]));
  EXPECT_EQ(order[24], 12);
  EXPECT_EQ(m.row_ptr[26] - m.row_ptr[25], 2);  // row 13
}

TEST(BoundaryRows, NoneWhereNothingIsNeeded) {
  const HostCsr m = diagonal(40, {});
  const BoundaryRows boundary = find_boundary_rows(m, 0, 40);
  EXPECT_EQ(boundary.rows, 0);
  EXPECT_EQ(boundary.nnz, 0);
}

TEST(BoundaryRows, OfFewRows) {
  EXPECT_EQ(find_boundary_rows(diagonal(5, {2}), 0, 5).rows, 5);
  EXPECT_EQ(find_boundary_rows(diagonal(0, {}), 0, 0).rows, 0);
  EXPECT_EQ(find_boundary_rows(diagonal(24, {23}), 0, 24).rows, 12);
}

}  // namespace
}  // namespace shardmat
