// Matrices from rows and triplets in the program's own memory.
#include "runtime/matrix/own_rows.h"
#include "runtime/matrix/load_part.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partition/source/node_blocks.h"
#include "partition/source/partitioner.h"
#include "runtime/matrix/vectors.h"
#include "tests/partition/test_matrices.h"
#include "tests/runtime/matrix/test_matrix.h"

namespace shardmat {
namespace {

using test::expect_product;
using test::multiply_once;
using test::whole_matrix;

/// Ranges of different lengths, one of them empty, that follow each other from the last rank to the first.
RowRange range_of(int rank, std::int64_t rows) {
  const int size = world().size();
  std::vector<std::int64_t> shares;
  std::int64_t all = 0;
  for (int r = 0; r < size; ++r) shares.push_back(size > 2 && r == 1 ? 0 : r + 1), all += shares.back();
  std::int64_t end = rows, first = rows;
  for (int r = 0; r <= rank; ++r) {
    end = first;
    first = r == size - 1 ? 0 : end - rows * shares[static_cast<std::size_t>(r)] / all;
  }
  return {first, end - first};
}

/// This rank's rows, the columns of each backwards.
struct Rows {
  RowRange range;
  std::int64_t cols;
  std::vector<std::int64_t> row_ptr, columns;
  std::vector<double> values;

  Rows(const HostCsr& a, RowRange of) : range(of), cols(a.cols) {
    row_ptr.push_back(5);  // any offset
    for (std::int64_t row = range.first; row < range.first + range.count; ++row) {
      for (std::int64_t k = a.row_ptr[static_cast<std::size_t>(row) + 1] - 1; k >= a.row_ptr[static_cast<std::size_t>(row)];
           --k) {
        columns.push_back(a.col_idx[static_cast<std::size_t>(k)]);
        values.push_back(a.values[static_cast<std::size_t>(k)]);
      }
      row_ptr.push_back(5 + std::ssize(columns));
    }
  }
  OwnRows view() const { return {range, cols, row_ptr, columns, values.data(), {}}; }
};

ConstDense host_view(const std::vector<double>& values) { return {values.data(), std::ssize(values)}; }

MatrixOptions options_for(const Case& c) {
  MatrixOptions options;
  options.type = c.type;
  options.exchange = c.exchange;
  options.values = Values::updatable;
  return options;
}

void takes_rows(const Case& c) {
  Context& context = context_of(c);
  Stream& stream = context.stream();
  for (const char* specification : {"elasticity:n=6", "random:n=300,cols=200"}) {
    SCOPED_TRACE(specification);
    const HostCsr a = whole_matrix(specification);
    HostCsr b = a;
    for (std::size_t k = 0; k < b.values.size(); ++k) b.values[k] = static_cast<double>(k % 777) / 32 - 11;
    const Rows mine(a, range_of(world().rank(), a.rows)), changed(b, mine.range);
    DistributedMatrix matrix(take_rows(mine.view(), context, c.type), context, options_for(c));
    EXPECT_EQ(matrix.rows(), a.rows);
    EXPECT_EQ(matrix.nnz(), a.nnz());
    EXPECT_EQ(matrix.partition_origin(), "given");
    EXPECT_EQ(matrix.local_rows(), mine.range.count);
    const auto one = matrix.product(1), several = matrix.product(4);
    for (const Product* product : {one.get(), several.get()}) expect_product(*product, a, multiply_once(*product, stream));
    matrix.update_values(host_view(changed.values), stream);
    for (const Product* product : {one.get(), several.get()}) expect_product(*product, b, multiply_once(*product, stream));
  }
}

void takes_rows_of_a_device(const Case& c) {
  Context& context = context_of(c);
  Stream& stream = context.stream();
  const HostCsr a = whole_matrix("elasticity:n=5");
  const Rows mine(a, range_of(world().rank(), a.rows));
  const auto upload = [&](const auto& from) {
    Buffer buffer(context.device(), from.size() * sizeof(from[0]));
    if (!from.empty()) copy_to_device(buffer.data(), from.data(), buffer.bytes(), stream);
    return buffer;
  };
  const Buffer row_ptr = upload(mine.row_ptr), columns = upload(mine.columns), values = upload(mine.values);
  OwnRows given = mine.view();
  given.row_ptr = {row_ptr.as<std::int64_t>(), mine.row_ptr.size()};
  given.columns = {columns.as<std::int64_t>(), mine.columns.size()};
  given.values = values.as<double>(), given.device = context.device();
  DistributedMatrix matrix(take_rows(given, context, c.type), context, options_for(c));
  const auto product = matrix.product();
  expect_product(*product, a, multiply_once(*product, stream));
}

/// Elements of a mesh: each rank gives half of the entries of rows all over the matrix, each twice.
void takes_triplets(const Case& c) {
  Context& context = context_of(c);
  Stream& stream = context.stream();
  const HostCsr a = whole_matrix("elasticity:n=6");
  const int size = world().size(), rank = world().rank();
  std::vector<std::int64_t> rows, columns;
  std::vector<double> values, doubled;
  for (std::int64_t row = 0; row < a.rows; ++row)
    for (auto k = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(row)]);
         k < static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(row) + 1]); ++k)
      for (int part = 0; part < 2; ++part) {
        if ((static_cast<int>(k) + part) % size != rank) continue;
        rows.push_back(row), columns.push_back(a.col_idx[k]);
        const double half = a.values[k] / 2;  // exact
        values.push_back(half), doubled.push_back(2 * half);
      }
  const RowRange range = range_of(rank, a.rows);
  const OwnTriplets given{range, a.cols, rows, columns, values.data(), {}};
  DistributedMatrix matrix(take_triplets(given, context, c.type), context, options_for(c));
  EXPECT_EQ(matrix.nnz(), a.nnz());
  const auto product = matrix.product(2);
  expect_product(*product, a, multiply_once(*product, stream));
  HostCsr b = a;
  for (double& value : b.values) value *= 2;
  matrix.update_values(host_view(doubled), stream);
  expect_product(*product, b, multiply_once(*product, stream));
  matrix.update_values(host_view(values), stream);
  expect_product(*product, a, multiply_once(*product, stream));
}

/// Row ranges that callers may have: see range_of(); all rows on one rank.
std::vector<RowRange> ranges_of_this_rank(std::int64_t rows) {
  const int rank = world().rank(), last = world().size() - 1;
  return {range_of(rank, rows), rank == 0 ? RowRange{0, rows} : RowRange{3, 0},
          rank == last ? RowRange{0, rows} : RowRange{}};
}

/// Entries of X in rows of the range, row by row.
std::vector<double> x_of(RowRange range, std::int64_t columns) {
  std::vector<double> x;
  for (std::int64_t i = range.first; i < range.first + range.count; ++i)
    for (std::int64_t j = 0; j < columns; ++j) x.push_back(test::x_at(i, j));
  return x;
}

/// Y of the caller's rows is A·X within the rounding of the type.
void expect_rows_of_y(const HostCsr& a, RowRange range, ValueType type, std::int64_t columns, const HostVector<double>& y) {
  ASSERT_EQ(std::ssize(y), range.count * columns);
  for (std::int64_t i = 0; i < range.count; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto row = static_cast<std::size_t>(range.first + i);
      double sum = 0, absolute = 0;
      for (auto k = static_cast<std::size_t>(a.row_ptr[row]); k < static_cast<std::size_t>(a.row_ptr[row + 1]); ++k) {
        const double term = rounded(type, a.values[k]) * test::x_at(a.col_idx[k], j);
        sum += term, absolute += std::abs(term);
      }
      const double bound = 2 * unit_roundoff(type) * static_cast<double>(a.row_ptr[row + 1] - a.row_ptr[row] + 1) * absolute;
      ASSERT_LE(std::abs(y[static_cast<std::size_t>(i * columns + j)] - sum), bound) << "row " << row << ", column " << j;
    }
}

/// Entries of the caller's rows come and go column by column as they do row by row.
void expect_columns_work(DistributedVector& v, Stream& stream) {
  const std::int64_t rows = v.own_rows(), leading = rows + 1;
  const HostVector<double> by_row = v.own(stream);
  HostVector<double> by_column(static_cast<std::size_t>(leading * v.columns()));
  const Dense view{by_column.data(), rows, v.columns(), leading, DenseOrder::column_major, ValueType::f64, {}};
  v.own(view, stream);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < v.columns(); ++j)
      ASSERT_EQ(by_column[static_cast<std::size_t>(i + j * leading)], by_row[static_cast<std::size_t>(i * v.columns() + j)]);
  v.fill(0, stream);
  v.set_own(view, stream);
  EXPECT_EQ(v.own(stream), by_row);
}

/// X is given and Y is taken in the caller's rows, or for a matrix that is not square X in even shares.
void expect_product_of_callers_rows(DistributedMatrix& matrix, const HostCsr& a, RowRange range, std::int64_t columns) {
  Stream& stream = matrix.context().stream();
  const auto product = matrix.product(columns);
  DistributedVector x(matrix, VectorLayout::columns, matrix.type(), columns),
      y(matrix, VectorLayout::rows, matrix.type(), columns);
  const bool square = a.rows == a.cols;
  const RowRange of_x = square ? range : RowRange{x.ids().empty() ? 0 : x.ids()[0], std::ssize(x.ids())};
  EXPECT_EQ(x.own_rows(), of_x.count);
  EXPECT_EQ(y.own_rows(), range.count);
  const std::vector<double> mine = x_of(of_x, columns);
  x.set_own(mine, stream);
  EXPECT_EQ(x.own(stream), HostVector<double>(mine.begin(), mine.end()));
  const std::vector<double> all = x_of({0, a.cols}, columns);
  const HostVector<double> gathered = x.gather(stream);
  EXPECT_EQ(gathered, world().rank() == 0 ? HostVector<double>(all.begin(), all.end()) : HostVector<double>());
  x.fill(0, stream);
  x.scatter(gathered, stream);
  EXPECT_EQ(x.own(stream), HostVector<double>(mine.begin(), mine.end()));
  product->multiply(1, x.view(), 0, y.view(), stream);
  product->wait(stream);
  expect_rows_of_y(a, range, matrix.type(), columns, y.own(stream));
  expect_columns_work(y, stream);
}

void expect_diagonal(DistributedMatrix& matrix, const HostCsr& a, RowRange range) {
  HostVector<double> expected(static_cast<std::size_t>(range.count), 0.0);
  for (std::int64_t i = 0; i < range.count; ++i) {
    const auto row = static_cast<std::size_t>(range.first + i);
    for (auto k = static_cast<std::size_t>(a.row_ptr[row]); k < static_cast<std::size_t>(a.row_ptr[row + 1]); ++k)
      if (a.col_idx[k] == range.first + i) expected[static_cast<std::size_t>(i)] = rounded(matrix.type(), a.values[k]);
  }
  Stream& stream = matrix.context().stream();
  EXPECT_EQ(matrix.diagonal(stream).own(stream), expected);
}

/// The parts are those of a file, and each rank has the rows of its part.
void expect_parts_of(const DistributedMatrix& matrix, const HostCsr& a, std::string_view method) {
  const std::vector<std::int64_t> starts =
      make_partition(method, a.row_ptr, world().size(), find_node_block_size(*test::source_of(a))).row_starts;
  EXPECT_EQ(matrix.y_rows()->starts(), starts);
  EXPECT_EQ(matrix.partition_origin(), "computed when loading");
  const auto rank = static_cast<std::size_t>(world().rank());
  HostVector<std::int64_t> ids = matrix.y_rows()->ids();
  std::sort(ids.begin(), ids.end());
  HostVector<std::int64_t> expected(static_cast<std::size_t>(starts[rank + 1] - starts[rank]));
  std::iota(expected.begin(), expected.end(), starts[rank]);
  EXPECT_EQ(ids, expected);
}

HostCsr with_other_values(HostCsr a) {
  for (std::size_t k = 0; k < a.values.size(); ++k) a.values[k] = static_cast<double>(k % 777) / 32 - 11;
  return a;
}

void spreads_rows(const Case& c, const char* specification, const char* method) {
  Context& context = context_of(c);
  const HostCsr a = whole_matrix(specification), b = with_other_values(a);
  int which = 0;
  for (const RowRange range : ranges_of_this_rank(a.rows)) {
    SCOPED_TRACE(testing::Message() << specification << " by " << method << ", ranges " << which++);
    const Rows mine(a, range), changed(b, range);
    DistributedMatrix matrix(take_rows(mine.view(), context, c.type, method), context, options_for(c));
    EXPECT_EQ(matrix.nnz(), a.nnz());
    expect_parts_of(matrix, a, method);
    for (const std::int64_t columns : {1, 4}) expect_product_of_callers_rows(matrix, a, range, columns);
    if (a.rows == a.cols) expect_diagonal(matrix, a, range);
    matrix.update_values(host_view(changed.values), context.stream());
    expect_product_of_callers_rows(matrix, b, range, 4);
    if (a.rows == a.cols) expect_diagonal(matrix, b, range);
  }
}

void spreads_rows_by_nonzeros(const Case& c) {
  for (const char* specification : {"random:n=300,cols=200", "rmat:scale=9"}) spreads_rows(c, specification, "nnz");
}

void spreads_rows_by_rows(const Case& c) { spreads_rows(c, "banded:n=5", "rows"); }

/// Each rank gives a part of the entries of rows all over the matrix, each in two halves.
struct Halves {
  std::vector<std::int64_t> rows, columns;
  std::vector<double> values;

  explicit Halves(const HostCsr& a) {
    const int size = world().size(), rank = world().rank();
    for (std::int64_t row = 0; row < a.rows; ++row)
      for (auto k = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(row)]);
           k < static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(row) + 1]); ++k)
        for (int part = 0; part < 2; ++part) {
          if ((static_cast<int>(k) + part) % size != rank) continue;
          rows.push_back(row), columns.push_back(a.col_idx[k]), values.push_back(a.values[k] / 2);  // exact
        }
  }
  OwnTriplets view(const HostCsr& a, RowRange range) const { return {range, a.cols, rows, columns, values.data(), {}}; }
};

void spreads_triplets(const Case& c) {
  Context& context = context_of(c);
  for (const char* specification : {"elasticity:n=5", "random:n=100,cols=70"}) {
    const HostCsr a = whole_matrix(specification), b = with_other_values(a);
    const Halves given(a), changed(b);
    int which = 0;
    for (const RowRange range : ranges_of_this_rank(a.rows)) {
      SCOPED_TRACE(testing::Message() << specification << ", ranges " << which++);
      DistributedMatrix matrix(take_triplets(given.view(a, range), context, c.type, "nnz"), context, options_for(c));
      EXPECT_EQ(matrix.nnz(), a.nnz());
      expect_parts_of(matrix, a, "nnz");
      for (const std::int64_t columns : {1, 4}) expect_product_of_callers_rows(matrix, a, range, columns);
      matrix.update_values(host_view(changed.values), context.stream());
      expect_product_of_callers_rows(matrix, b, range, 4);
      if (a.rows == a.cols) expect_diagonal(matrix, b, range);
    }
  }
}

#define SHARDMAT_OWN_TEST(name, check)                             \
  TEST(OwnRows, name##F64) { check(kHost64); }                     \
  TEST(OwnRows, name##F32) { check(kHost32); }                     \
  TEST(OwnRows, name##Halo) { check(kHostHalo); }                  \
  TEST(GpuOwnRows, name##F64) { on_gpus(check, kCuda64); }         \
  TEST(GpuOwnRows, name##F32) { on_gpus(check, kCuda32); }         \
  TEST(MultiGpuOwnRows, name##Halo) { on_gpus(check, kCudaHalo); } \
  TEST(MultiGpuOwnRows, name##Peer) { on_peers(check, kCudaPeer); }

SHARDMAT_OWN_TEST(Rows, takes_rows)
SHARDMAT_OWN_TEST(RowsOfADevice, takes_rows_of_a_device)
SHARDMAT_OWN_TEST(Triplets, takes_triplets)
SHARDMAT_OWN_TEST(RowsSpreadByNonzeros, spreads_rows_by_nonzeros)
SHARDMAT_OWN_TEST(RowsSpreadByRows, spreads_rows_by_rows)
SHARDMAT_OWN_TEST(TripletsSpreadAnew, spreads_triplets)

std::string refused(const OwnRows& rows) {
  return error_of(ErrorKind::input, [&] { take_rows(rows, context_of(kHost64)); });
}

/// Only the last rank is wrong; all must say the same.
TEST(OwnRows, WrongRowsAreRefusedOnAllRanks) {
  const HostCsr a = whole_matrix("elasticity:n=4");
  const int rank = world().rank(), last = world().size() - 1;
  const RowRange range = range_of(rank, a.rows);
  const auto changed = [&](auto change) {
    Rows rows(a, range);
    if (rank == last) change(rows);
    return refused(rows.view());
  };
  EXPECT_NE(changed([](Rows& r) { r.columns[3] = -1; }).find("has column -1"), std::string::npos);
  EXPECT_NE(changed([&](Rows& r) { r.columns[3] = a.cols; }).find("columns 0 to"), std::string::npos);
  EXPECT_NE(changed([](Rows& r) { r.columns[1] = r.columns[0]; }).find("twice; add the two values up"), std::string::npos);
  EXPECT_NE(changed([](Rows& r) { r.values[2] = std::numeric_limits<double>::quiet_NaN(); }).find("must be finite"),
            std::string::npos);
  EXPECT_NE(changed([](Rows& r) { std::swap(r.row_ptr[0], r.row_ptr[1]); }).find("ends before it begins"),
            std::string::npos);
  EXPECT_NE(changed([](Rows& r) { r.row_ptr.pop_back(); }).find("one more than rows"), std::string::npos);
  EXPECT_NE(changed([](Rows& r) { r.columns.pop_back(); }).find("span"), std::string::npos);
}

TEST(OwnRows, RangesMustTile) {
  const std::vector<std::int64_t> row_ptr = {0, 0, 0};
  OwnRows rows{{2 * world().rank(), 2}, 2 * world().size(), row_ptr, {}, nullptr, {}};
  EXPECT_EQ(take_rows(rows, context_of(kHost64))->nnz, 0);
  rows.range.first += 1;
  EXPECT_NE(refused(rows).find("rows 0 to 0 belong to no rank"), std::string::npos);
  if (world().size() == 1) return;
  rows.range.first = 2 * world().rank() - (world().rank() == 1 ? 1 : 0);
  EXPECT_NE(refused(rows).find("row 1 belongs to rank 1 and to another rank"), std::string::npos);
}

TEST(OwnRows, SumsBeyondF64AreRefused) {
  const std::vector<std::int64_t> zeros = {0, 0};
  const std::vector<double> values = {1e308, 1e308};
  const OwnTriplets given{{world().rank() * 3, 3}, 3 * world().size(), zeros, zeros, values.data(), {}};
  const std::string message = error_of(ErrorKind::input, [&] { take_triplets(given, context_of(kHost64)); });
  EXPECT_NE(message.find("more than f64 holds"), std::string::npos) << message;
}

/// Internal numbers of own rows begin elsewhere than their global ones.
TEST(OwnRows, DiagonalBlocksGoByGlobalRows) {
  const HostCsr a = whole_matrix("banded:n=8");
  const int size = world().size(), rank = world().rank();
  if (size != 2) GTEST_SKIP() << "for two ranks";
  Context& context = context_of(kHost64);
  for (const std::int64_t first : {4, 3}) {  // of the first rank; the second has the rows before
    const RowRange range = rank == 0 ? RowRange{first, 8 - first} : RowRange{0, first};
    const Rows mine(a, range);
    DistributedMatrix matrix(take_rows(mine.view(), context), context, {});
    if (first == 4) {
      EXPECT_EQ(matrix.block_diagonal(4, context.stream()).count, 1);
    } else {
      EXPECT_NE(error_of(ErrorKind::usage, [&] { matrix.block_diagonal(2, context.stream()); }).find("begins at row 3"),
                std::string::npos);
    }
  }
}

/// The last rank alone is wrong; all must say the same, and the matrix stays usable.
TEST(OwnRows, WrongUseOfRowsSpreadAnewIsRefusedOnAllRanks) {
  Context& context = context_of(kHost64);
  Stream& stream = context.stream();
  const HostCsr a = whole_matrix("rmat:scale=7");
  const int rank = world().rank(), last = world().size() - 1;
  const RowRange range = range_of(rank, a.rows);
  const Rows mine(a, range);
  const auto take = [&](std::string_view method) {
    return error_of(ErrorKind::usage, [&] { take_rows(mine.view(), context, ValueType::f64, method); });
  };
  EXPECT_NE(take("nzz").find("did you mean 'nnz'"), std::string::npos);
  if (last > 0) {
    EXPECT_NE(take(rank == last ? "" : "nnz").find("rank 0 asks for the partitioner 'nnz'"), std::string::npos);
  }
  DistributedMatrix matrix(take_rows(mine.view(), context, ValueType::f64, "nnz"), context, options_for(kHost64));
  const std::size_t more = rank == last ? 1 : 0;
  DistributedVector x(matrix, VectorLayout::columns, ValueType::f64);
  std::vector<double> values(static_cast<std::size_t>(range.count) + more);
  EXPECT_NE(error_of(ErrorKind::usage, [&] { x.set_own(values, stream); }).find("values for"), std::string::npos);
  Dense view{values.data(), range.count, 1, 1, DenseOrder::row_major, ValueType::f64, {}};
  view.rows += static_cast<std::int64_t>(more);
  EXPECT_NE(error_of(ErrorKind::usage, [&] { x.set_own(view, stream); }).find("but this rank has"), std::string::npos);
  EXPECT_NE(error_of(ErrorKind::usage, [&] { x.own(view, stream); }).find("but this rank has"), std::string::npos);
  values = mine.values;
  values.resize(values.size() + more);
  EXPECT_NE(error_of(ErrorKind::usage, [&] { matrix.update_values(host_view(values), stream); }).find("but this rank gave"),
            std::string::npos);
  expect_product_of_callers_rows(matrix, a, range, 2);
}

/// Blocks around the diagonal are those of the rows that a rank owns now.
TEST(OwnRows, DiagonalBlocksOfRowsSpreadAnew) {
  if (world().size() > 2) GTEST_SKIP() << "for one and two ranks";
  Context& context = context_of(kHost64);
  const HostCsr a = whole_matrix("banded:n=8");
  const int rank = world().rank();
  const Rows mine(a, rank == 0 ? RowRange{0, 8} : RowRange{});
  DistributedMatrix matrix(take_rows(mine.view(), context, ValueType::f64, "rows"), context, {});
  const DiagonalBlocks blocks = matrix.block_diagonal(4, context.stream());
  ASSERT_EQ(blocks.count, 2 / world().size());
  HostVector<double> expected(static_cast<std::size_t>(blocks.count * 16), 0.0);
  const std::int64_t first = matrix.y_rows()->starts()[static_cast<std::size_t>(rank)];
  for (std::int64_t i = 0; i < 4 * blocks.count; ++i)
    for (auto k = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(first + i)]);
         k < static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(first + i) + 1]); ++k)
      if (a.col_idx[k] / 4 == (first + i) / 4) expected[static_cast<std::size_t>(4 * i + a.col_idx[k] % 4)] = a.values[k];
  EXPECT_EQ(to_host(blocks.values.data(), 16 * blocks.count, ValueType::f64, context.stream()), expected);
  if (world().size() == 1) return;
  EXPECT_NE(error_of(ErrorKind::usage, [&] { matrix.block_diagonal(3, context.stream()); }).find("keep them there"),
            std::string::npos);
}

TEST(OwnRows, WrongTripletsAreRefused) {
  const std::vector<std::int64_t> rows = {0, 99}, columns = {0, 1};
  const std::vector<double> values = {1, 2};
  const OwnTriplets given{{world().rank() * 3, 3}, 3 * world().size(), rows, columns, values.data(), {}};
  const std::string message = error_of(ErrorKind::input, [&] { take_triplets(given, context_of(kHost64)); });
  EXPECT_NE(message.find("triplet 1 is (99, 1, 2)"), std::string::npos) << message;
}

}  // namespace
}  // namespace shardmat
