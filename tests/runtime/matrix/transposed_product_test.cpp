// Products with the transpose from the rows that are stored once, on all ranks.
#include "runtime/matrix/product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/exchange/column_map.h"
#include "kernels/vector.h"
#include "runtime/matrix/own_rows.h"
#include "runtime/matrix/row_plan.h"
#include "runtime/matrix/vectors.h"
#include "runtime/source/matrix_source.h"
#include "tests/runtime/matrix/test_matrix.h"
#include "tests/support/matrix_zoo.h"

namespace shardmat {
namespace {

using test::options_for;
using test::value_of;
using test::whole_matrix;

/// Entry (id, j) of X, never constant.
double x_at(std::int64_t id, std::int64_t j) { return value_of(static_cast<std::uint64_t>(id * 64 + j + 12'345)); }
double y_at(std::int64_t id, std::int64_t j) { return value_of(static_cast<std::uint64_t>(id * 64 + j + 99'999)); }

/// Values for the rows of a map, in the layout of a view, as f64. Gaps are NaN.
template <class At>
HostVector<double> entries_of(const RowMap& map, const Dense& view, const At& at) {
  const bool by_rows = view.order == DenseOrder::row_major;
  HostVector<double> all(static_cast<std::size_t>((by_rows ? view.rows : view.columns) * view.leading), std::nan(""));
  for (std::int64_t i = 0; i < view.rows; ++i)
    for (std::int64_t j = 0; j < view.columns; ++j)
      all[static_cast<std::size_t>(by_rows ? i * view.leading + j : i + j * view.leading)] =
          at(map.ids()[static_cast<std::size_t>(i)], j);
  return all;
}

struct How {
  double alpha = 1, beta = 0;
  std::int64_t gap = 0;
  DenseOrder y_order = DenseOrder::row_major;
};

/// Y = alpha·Aᵀ·X + beta·Y by the product, in the layout of `how`, as f64; with twice the same bits.
HostVector<double> multiply(const TransposedProduct& product, const How& how, Stream& stream) {
  const DistributedMatrix& matrix = product.matrix();
  const ValueType type = matrix.type();
  Dense x = product.x_view(nullptr), y = product.y_view(nullptr);
  const std::int64_t gap = product.columns() == 1 ? 0 : how.gap;
  x.leading += gap;
  y.order = how.y_order, y.leading = (how.y_order == DenseOrder::row_major ? y.columns : y.rows) + gap;
  if (product.columns() == 1) y.order = DenseOrder::row_major, y.leading = 1;
  const HostVector<double> of_x = entries_of(*matrix.y_rows(), x, x_at),
                           of_y = entries_of(*matrix.x_rows(), y, [&](std::int64_t id, std::int64_t j) {
                             return how.beta == 0 ? std::nan("") : y_at(id, j);
                           });
  const Buffer x_memory(stream.device(), of_x.size() * size_of(type)),
      y_memory(stream.device(), of_y.size() * size_of(type));
  to_device(x_memory.data(), of_x, type, stream);
  x.data = x_memory.data(), y.data = y_memory.data();
  HostVector<double> results[2];
  for (HostVector<double>& result : results) {
    to_device(y_memory.data(), of_y, type, stream);
    product.multiply(how.alpha, x, how.beta, y, stream);
    product.wait(stream);
    result = to_host(y_memory.data(), std::ssize(of_y), type, stream);
  }
  for (std::size_t i = 0; i < of_y.size(); ++i) {
    const bool same = results[0][i] == results[1][i] || (std::isnan(results[0][i]) && std::isnan(results[1][i]));
    EXPECT_TRUE(same) << "other bits the second time at " << i;
  }
  return results[0];
}

void expect_transposed(const TransposedProduct& product, const HostCsr& a, const How& how, const HostVector<double>& y) {
  const DistributedMatrix& matrix = product.matrix();
  const std::int64_t columns = product.columns();
  const auto entries = static_cast<std::size_t>(a.cols * columns);
  std::vector<double> sum(entries, 0.0), absolute(entries, 0.0), terms(entries, 0.0);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (auto k = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i)]);
         k < static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i) + 1]); ++k)
      for (std::int64_t j = 0; j < columns; ++j) {
        const auto at = static_cast<std::size_t>(a.col_idx[k] * columns + j);
        const double term = rounded(matrix.type(), a.values[k]) * rounded(matrix.type(), x_at(i, j));
        sum[at] += term, absolute[at] += std::abs(term), terms[at] += 1;
      }
  const std::int64_t rows = matrix.x_rows()->local_rows(), gap = columns == 1 ? 0 : how.gap;
  const bool by_rows = how.y_order == DenseOrder::row_major || columns == 1;
  const std::int64_t leading = columns == 1 ? 1 : (by_rows ? columns : rows) + gap;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const std::int64_t id = matrix.x_rows()->ids()[static_cast<std::size_t>(i)];
      const auto at = static_cast<std::size_t>(id * columns + j);
      const double old = how.beta == 0 ? 0 : how.beta * rounded(matrix.type(), y_at(id, j));
      const double got = y[static_cast<std::size_t>(by_rows ? i * leading + j : i + j * leading)];
      const double bound = 2 * unit_roundoff(matrix.type()) * (terms[at] + world().size() + 3) *
                           (std::abs(how.alpha) * absolute[at] + std::abs(old));
      ASSERT_LE(std::abs(got - (how.alpha * sum[at] + old)), bound) << "entry " << id << ", right-hand side " << j;
    }
}

void check(DistributedMatrix& matrix, const HostCsr& a, std::int64_t columns, Stream& stream) {
  SCOPED_TRACE(std::to_string(columns) + " right-hand sides");
  const auto product = matrix.transposed_product(columns);
  EXPECT_EQ(product->columns(), columns);
  for (const How& how :
       {How{}, How{-0.5, 2, 3}, How{1, 0, 1, DenseOrder::column_major}, How{2, 1, 0, DenseOrder::column_major}})
    expect_transposed(*product, a, how, multiply(*product, how, stream));
}

void multiplies(const Case& c) {
  Context& context = context_of(c);
  Stream& stream = context.stream();
  for (const char* specification :
       {"elasticity:n=6", "random:n=500,cols=700", "random:n=600,cols=90", "rmat:scale=9", "convection_diffusion:n=9"}) {
    SCOPED_TRACE(specification);
    const HostCsr a = whole_matrix(specification);
    for (const LocalSort sort : {LocalSort::none, LocalSort::by_length}) {
      DistributedMatrix matrix(open_matrix(specification, world()), context, options_for(c, sort));
      for (const std::int64_t columns : {1, 8, 3}) check(matrix, a, columns, stream);
    }
  }
}
SHARDMAT_MATRIX_TEST(TransposedProduct, Multiplies, multiplies)

/// Empty rows and columns, one dense column, and a rank without rows; the matrix may be tall or wide.
HostCsr holes(std::int64_t rows, std::int64_t cols) {
  HostCsr m;
  m.rows = rows, m.cols = cols;
  std::uint64_t counter = 77;
  for (std::int64_t i = 0; i < rows; ++i) {
    if (i % 7 != 3)
      for (std::int64_t c = 0; c < cols; ++c) {
        const bool dense = c == cols / 3, empty = c % 11 == 5 || c + 3 >= cols;
        if (dense || (!empty && (i * 31 + c * 17 + i * c) % 13 == 0))
          m.col_idx.push_back(c), m.values.push_back(value_of(++counter));
      }
    m.row_ptr.push_back(std::ssize(m.col_idx));
  }
  return m;
}

/// This rank's rows: rank 1 of three or more has none.
struct Mine {
  RowRange range;
  std::vector<std::int64_t> row_ptr{0}, columns;
  std::vector<double> values;

  explicit Mine(const HostCsr& a) {
    const int size = world().size(), rank = world().rank();
    const std::int64_t sharers = size > 2 ? size - 1 : size, place = size > 2 && rank > 1 ? rank - 1 : rank;
    range.first = a.rows * place / sharers;
    range.count = size > 2 && rank == 1 ? 0 : a.rows * (place + 1) / sharers - range.first;
    for (std::int64_t i = range.first; i < range.first + range.count; ++i) {
      for (auto k = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i)]);
           k < static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i) + 1]); ++k)
        columns.push_back(a.col_idx[k]), values.push_back(a.values[k]);
      row_ptr.push_back(std::ssize(columns));
    }
  }
  OwnRows view(std::int64_t cols) const { return {range, cols, row_ptr, columns, values.data(), {}}; }
};

void follows_new_values(const Case& c) {
  Context& context = context_of(c);
  Stream& stream = context.stream();
  for (const auto& [rows, cols] : std::vector<std::pair<std::int64_t, std::int64_t>>{{90, 90}, {150, 40}, {40, 150}})
    for (const std::string kernel : {"auto", c.backend == BackendChoice::host ? "sell_host" : "csr_vector"}) {
      SCOPED_TRACE(std::to_string(rows) + " × " + std::to_string(cols) + ", " + kernel);
      const HostCsr a = holes(rows, cols);
      HostCsr b = a;
      for (std::size_t k = 0; k < b.values.size(); ++k) b.values[k] = value_of(500'000 + k);
      MatrixOptions options;
      options.type = c.type, options.exchange = c.exchange, options.values = Values::updatable;
      options.plan.kernel = kernel;
      const Mine mine(a), changed(b);
      DistributedMatrix matrix(take_rows(mine.view(cols), context, c.type), context, options);
      const auto forward = matrix.product(1);
      const auto one = matrix.transposed_product(1);
      check(matrix, a, 3, stream);
      matrix.update_values(ConstDense(changed.values.data(), std::ssize(changed.values)), stream);
      expect_transposed(*one, b, {}, multiply(*one, {}, stream));
      check(matrix, b, 3, stream);
      test::expect_product(*forward, b, test::multiply_once(*forward, stream));
      matrix.update_values(ConstDense(mine.values.data(), std::ssize(mine.values)), stream);
      expect_transposed(*one, a, {}, multiply(*one, {}, stream));
    }
}
SHARDMAT_MATRIX_TEST(TransposedProduct, FollowsNewValues, follows_new_values)

/// On formats that are added as they lie, and by a map; no format is stored for it.
TEST(TransposedProduct, StoresNoSecondMatrix) {
  Context& context = context_of(kHost64);
  const HostCsr a = whole_matrix("elasticity:n=7");
  for (const char* kernel : {"csr_host", "bcsr_host", "packed_host", "coo_host", "sell_host"}) {
    SCOPED_TRACE(kernel);
    LoadOptions options = options_for(kHost64);
    options.plan.kernel = kernel;
    DistributedMatrix matrix(open_matrix("elasticity:n=7", world()), context, options);
    const auto product = matrix.product(1);
    const std::int64_t before = matrix.device_bytes();
    for (const std::int64_t columns : {1, 5}) check(matrix, a, columns, context.stream());
    EXPECT_EQ(matrix.device_bytes() - before, matrix.transpose_bytes());
    const bool map = std::string(kernel) == "coo_host" || std::string(kernel) == "sell_host";
    if (!map) {
      EXPECT_EQ(matrix.transpose_bytes(), 0);
      continue;
    }
    EXPECT_LE(matrix.transpose_bytes(), 8 * matrix.local_nnz() + 16 * (matrix.column_map().length() + 2));
  }
}

TEST(TransposedProduct, OfSymmetricStorageIsTheProduct) {
  Context& context = context_of(kHost64);
  const HostCsr a = whole_matrix("elasticity:n=6");
  LoadOptions options = options_for(kHost64);
  options.plan.storage = StoredEntries::half;
  DistributedMatrix matrix(open_matrix("elasticity:n=6", world()), context, options);
  for (const std::int64_t columns : {1, 3}) {
    const auto product = matrix.transposed_product(columns);
    expect_transposed(*product, a, {}, multiply(*product, {}, context.stream()));
    EXPECT_NE(product->kernel().find("its own transpose"), std::string::npos);
  }
  EXPECT_EQ(matrix.transpose_bytes(), 0);
}

TEST(TransposedProduct, TakesNothingForAlphaOfZero) {
  Context& context = context_of(kHost64);
  Stream& stream = context.stream();
  DistributedMatrix matrix(open_matrix("random:n=60,cols=40", world()), context, options_for(kHost64));
  const auto product = matrix.transposed_product(1);
  DistributedVector x(matrix, VectorLayout::rows, ValueType::f64), y(matrix, VectorLayout::columns, ValueType::f64);
  x.fill(std::nan(""), stream), y.fill(3, stream);
  product->multiply(0, x.view(), 0.5, y.view(), stream);
  for (const double value : y.own(stream)) EXPECT_EQ(value, 1.5);
}

TEST(TransposedProduct, IsRefused) {
  Context& context = context_of(kHost64);
  Stream& stream = context.stream();
  const MatrixSource source = open_matrix("random:n=60,cols=40", world());
  LoadOptions halves = options_for(kHost64);
  halves.type = ValueType::f16, halves.right_hand_sides = 2;
  DistributedMatrix in_f16(source, context, halves);
  EXPECT_NE(error_of(ErrorKind::usage, [&] { in_f16.transposed_product(2); }).find("f16"), std::string::npos);

  LoadOptions dropped = options_for(kHost64);
  dropped.plan.kernel = "sell_host", dropped.host_rows = HostRows::drop;
  DistributedMatrix without_rows(source, context, dropped);
  const auto product = without_rows.product(1);
  EXPECT_NE(error_of(ErrorKind::usage, [&] { without_rows.transposed_product(1); }).find("dropped"), std::string::npos);
  dropped.plan.kernel = "csr_host";
  DistributedMatrix as_stored(source, context, dropped);
  check(as_stored, whole_matrix("random:n=60,cols=40"), 1, stream);

  DistributedMatrix matrix(source, context, options_for(kHost64));
  EXPECT_THROW(matrix.transposed_product(0), Error);
  if (world().size() > 1) {
    EXPECT_THROW(matrix.transposed_product(1 + world().rank() % 2), Error);
  }
  const auto fits = matrix.transposed_product(2);
  DistributedVector x(matrix, VectorLayout::rows, ValueType::f64, 2), y(matrix, VectorLayout::columns, ValueType::f64, 2);
  EXPECT_THROW(fits->multiply(1, y.view(), 0, x.view(), stream), Error);  // the wrong way round
  Dense turned = x.view();
  turned.order = DenseOrder::column_major, turned.leading = turned.rows + 2;
  EXPECT_NE(error_of(ErrorKind::usage, [&] { fits->multiply(1, turned, 0, y.view(), stream); }).find("row-major"),
            std::string::npos);
}

}  // namespace
}  // namespace shardmat
