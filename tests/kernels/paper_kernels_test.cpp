// Kernels and orders that papers define: every number of threads a row, and clusters of packets.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/base/error.h"
#include "kernels/choose/registry.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/pkt.h"
#include "kernels/formats/upload.h"
#include "kernels/matrix/clustering.h"
#include "kernels/matrix/ordering.h"
#include "tests/support/matrix_zoo.h"

namespace shardmat {
namespace {

/// Whole numbers, so that sums of whole numbers are exact in any order.
double entry_of_x(std::int64_t j) { return static_cast<double>(j * 7 % 13 - 5); }

HostVector<double> multiplied(const HostCsr& m, const Plan& plan, Stream& stream) {
  HostVector<double> x(static_cast<std::size_t>(m.cols));
  for (std::int64_t j = 0; j < m.cols; ++j) x[static_cast<std::size_t>(j)] = entry_of_x(j);
  HostVector<double> y(static_cast<std::size_t>(m.rows));
  const Buffer of_x = upload<double>(x, stream), of_y(stream.device(), y.size() * sizeof(double));
  plan.multiply(1, of_x.data(), 0, of_y.data(), stream);
  copy_to_host(y.data(), of_y.data(), of_y.bytes(), stream);
  stream.synchronize();
  return y;
}

TEST(CrsPaper, MultipliesWithEveryNumberOfThreadsARow) {
  Stream stream{Device{}};
  const Kernel& kernel = find_kernel("crs_paper_host", Backend::host);
  for (const test::NamedMatrix& zoo : test::matrix_zoo()) {
    const HostCsr& m = zoo.matrix;
    ConversionInput input(m.view(), ValueType::f64, stream);
    const auto storage = store(find_format("csr"), input, {});
    EXPECT_EQ(kernel.policies(input.rows()).front().at("threads_per_row"), threads_per_row_by_formula(input.rows()));
    for (const int threads : {1, 2, 4, 8, 16, 32}) {
      const HostVector<double> y =
          multiplied(m, *make_plan(kernel, storage, {{"threads_per_row", threads}}, stream), stream);
      for (std::size_t i = 0; i < y.size(); ++i) {
        double sum = 0, size = 0;
        for (auto k = m.row_ptr[i]; k < m.row_ptr[i + 1]; ++k) {
          const double term = m.values[static_cast<std::size_t>(k)] * entry_of_x(m.col_idx[static_cast<std::size_t>(k)]);
          sum += term, size += std::abs(term);
        }
        ASSERT_NEAR(y[i], sum, 1e-13 * size) << zoo.name << " NT " << threads << " row " << i;
      }
    }
    EXPECT_THROW(make_plan(kernel, storage, {{"threads_per_row", 3}}, stream), Error);
  }
}

HostCsr grid(std::int64_t n) {
  HostCsr m;
  m.rows = m.cols = n * n;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t a = std::max<std::int64_t>(0, i - 1); a <= std::min(n - 1, i + 1); ++a)
        for (std::int64_t b = std::max<std::int64_t>(0, j - 1); b <= std::min(n - 1, j + 1); ++b)
          m.col_idx.push_back(a * n + b), m.values.push_back(static_cast<double>(1 + (a + b) % 5));
      m.row_ptr.push_back(std::ssize(m.values));
    }
  return m;
}

/// The same matrix with rows and columns in another order: order[new] = old.
HostCsr reordered(const HostCsr& m, std::span<const std::int64_t> order) {
  const HostVector<std::int64_t> place = invert_permutation(order);
  HostCsr out;
  out.rows = m.rows, out.cols = m.cols;
  for (const std::int64_t old : order) {
    const auto row = static_cast<std::size_t>(old);
    for (auto k = m.row_ptr[row]; k < m.row_ptr[row + 1]; ++k) {
      out.col_idx.push_back(place[static_cast<std::size_t>(m.col_idx[static_cast<std::size_t>(k)])]);
      out.values.push_back(m.values[static_cast<std::size_t>(k)]);
    }
    out.row_ptr.push_back(std::ssize(out.values));
  }
  sort_rows_and_sum_duplicates(out);
  return out;
}

TEST(Clusters, AreNeighbourhoods) {
  constexpr std::int64_t kSide = 32, kSize = 64;
  const HostCsr m = grid(kSide);
  HostVector<std::int64_t> shuffled(static_cast<std::size_t>(m.rows));
  for (std::int64_t i = 0; i < m.rows; ++i) shuffled[static_cast<std::size_t>(i)] = i * 389 % m.rows;
  const HostCsr mixed = reordered(m, shuffled);
  const auto order = order_by_clusters(mixed.view(), kSize);
  EXPECT_NO_THROW(invert_permutation(order));
  const auto inside = [&](const HostCsr& of) {
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < of.rows; ++i)
      for (auto k = of.row_ptr[static_cast<std::size_t>(i)]; k < of.row_ptr[static_cast<std::size_t>(i) + 1]; ++k)
        count += of.col_idx[static_cast<std::size_t>(k)] / kSize == i / kSize;
    return static_cast<double>(count) / static_cast<double>(of.nnz());
  };
  EXPECT_LT(inside(mixed), 0.3);
  EXPECT_GT(inside(reordered(mixed, order)), 0.6);
  EXPECT_THROW(order_by_clusters(mixed.view(), 0), Error);

  // Packets of the mixed matrix: clusters need fewer bytes than its rows as they are, and give the same product.
  Stream stream{Device{}};
  ConversionInput input(mixed.view(), ValueType::f64, stream);
  const Format& format = find_format("pkt");
  const Kernel& kernel = find_kernel("pkt_host", Backend::host);
  const Policy as_is{{"packet_rows", 64}, {"packet_columns", 256}, {"cluster", 0}}, clusters = as_is.with("cluster=1");
  EXPECT_LT(format.bytes(input, clusters), format.bytes(input, as_is));
  EXPECT_EQ(multiplied(mixed, *make_plan(kernel, store(format, input, clusters), {}, stream), stream),
            multiplied(mixed, *make_plan(kernel, store(format, input, as_is), {}, stream), stream));
}

}  // namespace
}  // namespace shardmat
