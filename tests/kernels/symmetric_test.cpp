// Symmetric storage: what is stored, and products by several threads.
#include "kernels/formats/symmetric.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/choose/registry.h"
#include "kernels/choose/spmm_registry.h"
#include "kernels/choose/tuner.h"
#include "tests/support/matrix_zoo.h"
#include "tests/support/plan_check.h"

namespace shardmat {
namespace {

/// Rows with `b` unknowns a node; each node is joined with those at the given distances before it. Square and symmetric.
HostCsr node_chain(std::int64_t nodes, std::int64_t b, const std::vector<std::int64_t>& distances) {
  HostCsr lower;
  lower.rows = lower.cols = nodes * b;
  for (std::int64_t row = 0; row < lower.rows; ++row) {
    for (const std::int64_t distance : distances)
      for (std::int64_t c = 0; row / b >= distance && c < b; ++c)
        if (const std::int64_t column = (row / b - distance) * b + c; column <= row) lower.col_idx.push_back(column);
    lower.row_ptr.push_back(std::ssize(lower.col_idx));
  }
  for (std::size_t k = 0; k < lower.col_idx.size(); ++k) lower.values.push_back(test::value_of(k));
  return test::mirrored(lower);
}

std::shared_ptr<SymmetricStorage> store_symmetric(const CsrView& matrix, int block, Stream& stream) {
  ConversionInput input(matrix, ValueType::f64, stream);
  return std::static_pointer_cast<SymmetricStorage>(convert_symmetric(input, Policy{{"block", block}}));
}

std::int64_t stored_blocks(const SymmetricStorage& a) {
  return static_cast<std::int64_t>(a.block_col.bytes() / sizeof(std::int32_t));
}

TEST(Symmetric, StoresOneOfTwoEqualEntries) {
  Stream stream({Backend::host, 0});
  const HostCsr m = node_chain(50, 3, {7, 1, 0});
  for (const int block : {1, 3}) {
    const auto stored = store_symmetric(m.view(), block, stream);
    EXPECT_EQ(stored->rest->nnz, 0);
    EXPECT_EQ(stored_blocks(*stored), block == 3 ? 50 + 49 + 43 : (m.nnz() + m.rows) / 2);
  }
}

TEST(Symmetric, KeepsEntriesWithoutAnEqualMirrorImage) {
  Stream stream({Backend::host, 0});
  HostCsr m = node_chain(50, 3, {7, 1, 0});
  // A value off the diagonal that differs from its mirror image in the last bit.
  const auto last = m.col_idx.end() - 1;
  ASSERT_EQ(*last, m.rows - 1);
  m.values[m.values.size() - 2] = std::nextafter(m.values[m.values.size() - 2], 2.0);
  EXPECT_EQ(store_symmetric(m.view(), 3, stream)->rest->nnz, 2);
  // Zeros of different sign are different bits.
  m.values[m.values.size() - 2] = 0.0;
  const auto row = static_cast<std::size_t>(m.rows - 2);
  const auto mirror = m.row_ptr[row + 1] - 1;
  ASSERT_EQ(m.col_idx[static_cast<std::size_t>(mirror)], m.rows - 1);
  m.values[static_cast<std::size_t>(mirror)] = -0.0;
  const auto stored = store_symmetric(m.view(), 1, stream);
  EXPECT_EQ(stored->rest->nnz, 2);
}

/// Rows of a rank: the diagonal begins at another column, and entries in columns of other ranks have no mirror image.
TEST(Symmetric, MultipliesARangeOfRows) {
  Stream stream({Backend::host, 0});
  const HostCsr m = node_chain(400, 3, {40, 5, 1, 0});
  for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>{0, 600}, {300, 900}, {301, 1199}, {600, 1200}}) {
    CsrView whole = m.view();
    const CsrView part = whole.rows_between(begin, end);
    EXPECT_EQ(part.diagonal, begin);
    HostCsr rows;
    rows.row_ptr.clear();
    rows.rows = end - begin, rows.cols = m.cols;
    for (std::int64_t i = begin; i <= end; ++i)
      rows.row_ptr.push_back(m.row_ptr[static_cast<std::size_t>(i)] - m.row_ptr[static_cast<std::size_t>(begin)]);
    rows.col_idx.assign(m.col_idx.begin() + m.row_ptr[static_cast<std::size_t>(begin)],
                        m.col_idx.begin() + m.row_ptr[static_cast<std::size_t>(end)]);
    rows.values.assign(m.values.begin() + m.row_ptr[static_cast<std::size_t>(begin)],
                       m.values.begin() + m.row_ptr[static_cast<std::size_t>(end)]);
    for (const int block : {1, 2, 3, 5}) {
      SCOPED_TRACE(fmt::format("rows {} to {}, blocks of {}", begin, end, block));
      const auto stored = store_symmetric(part, block, stream);
      EXPECT_LT(stored->rest->nnz, part.nnz() / 2);
      const auto plan = make_plan(find_kernel("symmetric_host", Backend::host), stored, {}, stream);
      test::check_plan<double>(*plan, rows, ValueType::f64, stream);
    }
  }
}

/// Large enough for a range of rows a thread; the farthest neighbours are two ranges away.
TEST(Symmetric, ThreadsAddToRowsOfOthers) {
  Stream stream({Backend::host, 0});
  for (const int unknowns : {1, 3, 4}) {
    const HostCsr m = node_chain(24'000 / unknowns, unknowns, {7'000 / unknowns, 900 / unknowns, 2, 1, 0});
    for (const int threads : {1, 2, 3, 7})
      for (const int block : {1, unknowns}) {
        SCOPED_TRACE(fmt::format("{} unknowns a node, {} threads, blocks of {}", unknowns, threads, block));
        const ThreadCount count(threads);
        const auto stored = store_symmetric(m.view(), block, stream);
        const auto plan = make_plan(find_kernel("symmetric_host", Backend::host), stored, {}, stream);
        EXPECT_EQ(plan->extra_bytes() > 0, threads > 1);
        test::check_plan<double>(*plan, m, ValueType::f64, stream);
      }
  }
}

TEST(Symmetric, ColumnsHaveTheBitsOfSingleProductsWithAnyNumberOfThreads) {
  Stream stream({Backend::host, 0});
  const HostCsr m = node_chain(8'000, 3, {2'500, 300, 2, 1, 0});
  const std::int64_t n = m.rows, columns = 5;
  std::vector<double> x(static_cast<std::size_t>(n * columns)), x_j(static_cast<std::size_t>(n)), y_j(x_j.size());
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = test::value_of(k);
  for (const int threads : {1, 2, 5}) {
    const ThreadCount count(threads);
    const auto stored = store_symmetric(m.view(), 3, stream);
    const auto single = make_plan(find_kernel("symmetric_host", Backend::host), stored, {}, stream);
    const auto several = make_spmm_plan(find_spmm_kernel("symmetric_host", Backend::host), stored, {columns}, {}, stream);
    std::vector<double> y(x.size(), 0.5);
    several->multiply(2, x.data(), columns, -1, y.data(), columns, stream);
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t i = 0; i < n; ++i) x_j[static_cast<std::size_t>(i)] = x[static_cast<std::size_t>(i * columns + j)];
      std::fill(y_j.begin(), y_j.end(), 0.5);
      single->multiply(2, x_j.data(), -1, y_j.data(), stream);
      for (std::int64_t i = 0; i < n; ++i)
        ASSERT_EQ(y_j[static_cast<std::size_t>(i)], y[static_cast<std::size_t>(i * columns + j)])
            << threads << " threads, row " << i << ", column " << j;
    }
  }
}

TEST(Symmetric, IsTakenOnlyWhereItIsAskedFor) {
  Stream stream({Backend::host, 0});
  const HostCsr m = node_chain(300, 3, {40, 1, 0});
  PlanRequest request;
  EXPECT_NE(choose_plan(m.view(), ValueType::f64, request, stream).plan->storage().format, "symmetric");
  request.tune = true;
  for (const auto& candidate : choose_plan(m.view(), ValueType::f64, request, stream).measurements)
    EXPECT_EQ(candidate.kernel.find("symmetric"), std::string::npos);
  request = {};
  request.storage = StoredEntries::half;
  const ChosenPlan half = choose_plan(m.view(), ValueType::f64, request, stream);
  EXPECT_EQ(half.plan->kernel, "symmetric_host");
  const auto has_blocks_of_nodes = [](const Measurement& one) { return one.policy.find("block=3") != std::string::npos; };
  if (half.measurements.empty()) EXPECT_EQ(half.plan->storage().layout.at("block"), 3);
  else EXPECT_TRUE(std::any_of(half.measurements.begin(), half.measurements.end(), has_blocks_of_nodes));
  request.kernel = "csr_host";
  try {
    choose_plan(m.view(), ValueType::f64, request, stream);
    ADD_FAILURE() << "csr_host stored half of the entries";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(e.what()).find("kernel csr_host needs all entries"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace shardmat
