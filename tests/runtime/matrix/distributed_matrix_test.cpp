// A matrix that stays: new values, diagonals, errors that leave it usable.
#include "runtime/matrix/distributed_matrix.h"
#include "kernels/matrix/csr.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "comm/exchange/column_map.h"
#include "kernels/base/memory_limits.h"
#include "kernels/vector.h"
#include "runtime/matrix/vectors.h"
#include "runtime/source/matrix_source.h"
#include "tests/runtime/matrix/test_matrix.h"

namespace shardmat {
namespace {

using test::expect_product;
using test::multiply_once;
using test::options_for;
using test::whole_matrix;

/// The values of this rank's rows in the order of the source.
HostVector<double> own_values(const DistributedMatrix& matrix, const HostCsr& a) {
  const auto rank = static_cast<std::size_t>(world().rank());
  const auto row = [&](std::size_t r) { return a.row_ptr[static_cast<std::size_t>(matrix.y_rows()->starts()[r])]; };
  return {a.values.begin() + row(rank), a.values.begin() + row(rank + 1)};
}

ConstDense host_view(const HostVector<double>& values) { return {values.data(), std::ssize(values)}; }

void takes_new_values(const Case& c) {
  Context& context = context_of(c);
  Stream& stream = context.stream();
  for (const LocalSort sort : {LocalSort::none, LocalSort::by_length}) {
    const HostCsr a = whole_matrix("elasticity:n=6,seed=1");
    HostCsr b = a;
    for (std::size_t k = 0; k < b.values.size(); ++k) b.values[k] = static_cast<double>(k % 1009) / 64 - 7;
    const MatrixSource source = open_matrix("elasticity:n=6,seed=1", world());
    LoadOptions options = options_for(c);
    options.sort = sort;
    options.values = Values::updatable;
    DistributedMatrix matrix(source, context, options);
    const auto before = matrix.product(8);
    expect_product(*before, a, multiply_once(*before, stream));
    EXPECT_GE(matrix.device_bytes(), matrix.map_bytes());
    const DistributedVector diagonal_of_a = matrix.diagonal(stream);

    const HostVector<double> mine = own_values(matrix, b);
    matrix.update_values(mine, stream);
    expect_product(*before, b, multiply_once(*before, stream));
    ProductOptions other;  // from the host rows, which must know the new values
    other.plan.emplace();
    other.plan->kernel = c.backend == BackendChoice::host ? "sell_host" : "sell";
    const auto after = matrix.product(other);
    expect_product(*after, b, multiply_once(*after, stream));
    const auto fresh = DistributedMatrix(source, context, options_for(c)).local_rows();
    EXPECT_EQ(fresh, matrix.local_rows());

    // From memory of the device; then A's again, in f64 whatever the matrix has.
    const HostVector<double> of_a = own_values(matrix, a);
    const Buffer there(context.device(), of_a.size() * sizeof(double));
    copy_to_device(there.data(), of_a.data(), there.bytes(), stream);
    ConstDense view = host_view(of_a);
    view.data = there.data(), view.device = context.device();
    matrix.update_values(view, stream);
    for (const Product* product : {before.get(), after.get()}) expect_product(*product, a, multiply_once(*product, stream));

    const HostVector<double> found = matrix.diagonal(stream).own(stream), first = diagonal_of_a.own(stream);
    EXPECT_EQ(found, first);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto row = static_cast<std::size_t>(matrix.y_rows()->starts()[static_cast<std::size_t>(world().rank())]) + i;
      const auto begin = a.col_idx.begin() + a.row_ptr[row], end = a.col_idx.begin() + a.row_ptr[row + 1];
      const auto at = std::find(begin, end, static_cast<std::int64_t>(row));
      ASSERT_NE(at, end);
      EXPECT_EQ(found[i], rounded(c.type, a.values[static_cast<std::size_t>(at - a.col_idx.begin())]));
    }
  }
}

/// The host rows hold the values of `m`.
void expect_host_values(DistributedMatrix& matrix, const HostCsr& m, ValueType type, Stream& stream) {
  const CsrView rows = matrix.host_rows(stream);
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows.rows); ++i) {
    const auto row = static_cast<std::size_t>(matrix.y_rows()->ids()[i]);
    HostVector<double> got, wanted;
    rows.values.visit([&](const auto& values) {
      for (std::int64_t k = rows.row_ptr[i]; k < rows.row_ptr[i + 1]; ++k)
        got.push_back(static_cast<double>(values[static_cast<std::size_t>(k)]));
    });
    for (std::int64_t k = m.row_ptr[row]; k < m.row_ptr[row + 1]; ++k)
      wanted.push_back(rounded(type, m.values[static_cast<std::size_t>(k)]));
    std::sort(got.begin(), got.end()), std::sort(wanted.begin(), wanted.end());
    ASSERT_EQ(got, wanted) << row;
  }
}

/// Whether they were read since the last new values or not: then those go into them at once.
void host_rows_have_the_last_values(const Case& c) {
  Context& context = context_of(c);
  Stream& stream = context.stream();
  for (const LocalSort sort : {LocalSort::none, LocalSort::by_length}) {
    LoadOptions options = options_for(c);
    options.sort = sort, options.values = Values::updatable;
    DistributedMatrix matrix(open_matrix("rmat:scale=7", world()), context, options);
    HostCsr m = whole_matrix("rmat:scale=7");
    const auto product = matrix.product();
    for (const bool reads : {true, true, false, false, true, true}) {
      for (std::size_t k = 0; k < m.values.size(); ++k) m.values[k] = 1.5 * m.values[k] + static_cast<double>(k % 7);
      matrix.update_values(own_values(matrix, m), stream);
      if (reads) expect_host_values(matrix, m, c.type, stream);
      expect_product(*product, m, multiply_once(*product, stream));
    }
  }
}

/// Blocks of any size lie in the order of the source, also where the rows do not, and follow new values.
void finds_diagonal_blocks(const Case& c, std::int64_t size) {
  Context& context = context_of(c);
  Stream& stream = context.stream();
  const HostCsr a = whole_matrix("elasticity:n=5");
  HostCsr b = a;
  for (std::size_t k = 0; k < b.values.size(); ++k) b.values[k] = static_cast<double>(k % 1009) / 64 - 7;
  const MatrixSource source = open_matrix("elasticity:n=5", world());
  LoadOptions options = options_for(c);
  options.method = "rows";
  options.sort = LocalSort::by_length;
  options.values = Values::updatable;
  DistributedMatrix matrix(source, context, options);
  const std::int64_t begin = matrix.y_rows()->starts()[static_cast<std::size_t>(world().rank())];
  const bool cut = world().all_reduce(begin % size == 0 ? 0 : 1, Reduction::max) == 1;
  if (cut) {
    const std::string message = error_of(ErrorKind::usage, [&] { matrix.block_diagonal(size, stream); });
    EXPECT_NE(message.find("Take a size that divides this number"), std::string::npos) << message;
    EXPECT_NE(message.find(fmt::format("a multiple of {} rows", size)), std::string::npos) << message;
    return;
  }
  const auto check = [&](const HostCsr& m) {
    const DiagonalBlocks blocks = matrix.block_diagonal(size, stream);
    const HostVector<double> found = to_host(blocks.values.data(), blocks.count * size * size, blocks.type, stream);
    EXPECT_EQ(blocks.count, (matrix.local_rows() + size - 1) / size);
    for (std::int64_t i = 0; i < matrix.local_rows(); ++i)
      for (std::int64_t j = 0; j < size; ++j) {
        const std::int64_t row = begin + i, column = begin + i / size * size + j;
        double expected = 0;
        for (auto k = static_cast<std::size_t>(m.row_ptr[static_cast<std::size_t>(row)]);
             k < static_cast<std::size_t>(m.row_ptr[static_cast<std::size_t>(row) + 1]); ++k)
          if (m.col_idx[k] == column && column < begin + matrix.local_rows()) expected = rounded(c.type, m.values[k]);
        EXPECT_EQ(found[static_cast<std::size_t>(i * size + j)], expected) << row << ", " << column;
      }
  };
  const auto product = matrix.product();
  check(a);
  EXPECT_EQ(matrix.diagonal(stream).own(stream).size(), static_cast<std::size_t>(matrix.local_rows()));
  matrix.update_values(host_view(own_values(matrix, b)), stream);
  check(b);
}
void finds_diagonal_blocks(const Case& c) {
  for (const std::int64_t size : {1, 2, 3, 5}) {
    SCOPED_TRACE(size);
    finds_diagonal_blocks(c, size);
  }
  DistributedMatrix matrix(open_matrix("elasticity:n=5", world()), context_of(c), options_for(c));
  for (const std::int64_t size : {0, -1})
    EXPECT_NE(
        error_of(ErrorKind::usage, [&] { matrix.block_diagonal(size, context_of(c).stream()); }).find("it must be 1 to"),
        std::string::npos);
}

/// Errors of each kind leave matrix, products and context as they were, and nothing behind.
void stays_usable(const Case& c) {
  Context& context = context_of(c);
  Stream& stream = context.stream();
  const HostCsr a = whole_matrix("elasticity:n=5");
  const MatrixSource source = open_matrix("elasticity:n=5", world());
  LoadOptions options = options_for(c);
  options.values = Values::updatable;
  DistributedMatrix matrix(source, context, options);
  const auto product = matrix.product();
  const HostVector<double> right = multiply_once(*product, stream);
  expect_product(*product, a, right);
  const Buffer y(context.device(), product->y_bytes() + 64);
  const HostVector<double> few(3);
  const auto make_errors = [&] {
    error_of(ErrorKind::usage, [&] { matrix.product(0); });
    ASSERT_NE(error_of(ErrorKind::usage, [&] { matrix.product(-1); }).find("right-hand sides"), std::string::npos);
    ProductOptions wrong;
    wrong.columns = 6, wrong.column_block = 4;
    ASSERT_NE(error_of(ErrorKind::usage, [&] { matrix.product(wrong); }).find("blocks of 4"), std::string::npos);
    wrong = {};
    wrong.plan.emplace();
    wrong.plan->kernel = "no_such_kernel";
    ASSERT_NE(error_of(ErrorKind::usage, [&] { matrix.product(wrong); }).find("there is no kernel"), std::string::npos);
    ASSERT_NE(error_of(ErrorKind::usage, [&] { matrix.update_values(host_view(few), stream); }).find("3 × 1"),
              std::string::npos);
    Dense of_another_size = product->y_view(y.data());
    of_another_size.rows += 1;
    ASSERT_NE(error_of(ErrorKind::usage, [&] { product->multiply(1, 0, of_another_size, stream); }).find("Y is"),
              std::string::npos);
    ASSERT_EQ(multiply_once(*product, stream), right);
  };
  for (int round = 0; round < 10; ++round) make_errors();
  // What another program on the GPU takes meanwhile is no leak: that comes each time.
  int leaks = 1;
  for (int attempt = 0; attempt < 20 && leaks != 0; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const std::int64_t free = available_memory(context.device());
    for (int round = 0; round < 90; ++round) make_errors();
    leaks = c.backend == BackendChoice::cuda && available_memory(context.device()) < free;
    leaks = world().all_reduce(leaks, Reduction::max);
  }
  EXPECT_EQ(leaks, 0);
}

SHARDMAT_MATRIX_TEST(DistributedMatrix, NewValues, takes_new_values)
SHARDMAT_MATRIX_TEST(DistributedMatrix, HostRowsHaveTheLastValues, host_rows_have_the_last_values)
SHARDMAT_MATRIX_TEST(DistributedMatrix, DiagonalBlocks, finds_diagonal_blocks)
SHARDMAT_MATRIX_TEST(DistributedMatrix, Usable, stays_usable)

TEST(DistributedMatrix, FixedValuesRefuseNewOnes) {
  const MatrixSource source = open_matrix("banded:n=50", world());
  DistributedMatrix matrix(source, context_of(kHost64), options_for(kHost64));
  const HostVector<double> values(static_cast<std::size_t>(matrix.local_nnz()));
  const std::string message =
      error_of(ErrorKind::usage, [&] { matrix.update_values(host_view(values), context_of(kHost64).stream()); });
  EXPECT_NE(message.find("Values::updatable"), std::string::npos) << message;
}

TEST(DistributedMatrix, DiagonalOfWhatIsNotSquare) {
  const MatrixSource source = open_matrix("random:n=20,cols=30", world());
  DistributedMatrix matrix(source, context_of(kHost64), options_for(kHost64));
  const std::string message = error_of(ErrorKind::usage, [&] { matrix.diagonal(context_of(kHost64).stream()); });
  EXPECT_NE(message.find("20 × 30 has no diagonal"), std::string::npos) << message;
}

TEST(DistributedMatrix, OddRequestsAreRefusedOnAllRanks) {
  const MatrixSource source = open_matrix("banded:n=50", world());
  Context& context = context_of(kHost64);
  LoadOptions options = options_for(kHost64);
  options.values = Values::updatable;
  DistributedMatrix matrix(source, context, options);
  const std::int64_t huge = std::int64_t{1} << 32;
  std::string message = error_of(ErrorKind::usage, [&] { matrix.block_diagonal(huge, context.stream()); });
  EXPECT_NE(message.find("it must be 1 to 50"), std::string::npos) << message;
  const HostVector<double> values(static_cast<std::size_t>(2 * matrix.local_nnz()), 1.0);
  ConstDense gaps;
  gaps.data = values.data(), gaps.rows = matrix.local_nnz(), gaps.leading = 2;
  message = error_of(ErrorKind::usage, [&] { matrix.update_values(gaps, context.stream()); });
  EXPECT_NE(message.find("gaps"), std::string::npos) << message;
  if (world().size() == 1) return;
  ProductOptions wrong;
  wrong.exchange = matrix.column_map().layout() == ColumnLayout::compact ? "allgather" : "halo";
  message = error_of(ErrorKind::usage, [&] { matrix.product(wrong); });
  EXPECT_NE(message.find("needs another order of x"), std::string::npos) << message;
  wrong.exchange = "hallo";
  message = error_of(ErrorKind::usage, [&] { matrix.product(wrong); });
  EXPECT_NE(message.find("did you mean 'halo'"), std::string::npos) << message;
  expect_product(*matrix.product(), whole_matrix("banded:n=50"), multiply_once(*matrix.product(), context.stream()));
}

}  // namespace
}  // namespace shardmat
