// Matrices from rows and triplets in the program's own memory.
#include "runtime/matrix/own_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "runtime/matrix/vectors.h"
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
  OwnRows view() const { return {range, cols, row_ptr, columns, values.data(), ValueType::f64, {}}; }
};

ConstDense host_view(const std::vector<double>& values) {
  ConstDense view;
  view.data = values.data(), view.rows = std::ssize(values);
  return view;
}

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
  given.values = values.data(), given.device = context.device();
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
  const OwnTriplets given{range, a.cols, rows, columns, values.data(), ValueType::f64, {}};
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
  OwnRows rows{{2 * world().rank(), 2}, 2 * world().size(), row_ptr, {}, nullptr, ValueType::f64, {}};
  EXPECT_EQ(take_rows(rows, context_of(kHost64)).nnz, 0);
  rows.range.first += 1;
  EXPECT_NE(refused(rows).find("rows 0 to 0 belong to no rank"), std::string::npos);
  if (world().size() == 1) return;
  rows.range.first = 2 * world().rank() - (world().rank() == 1 ? 1 : 0);
  EXPECT_NE(refused(rows).find("row 1 belongs to rank 1 and to another rank"), std::string::npos);
}

TEST(OwnRows, SumsBeyondF64AreRefused) {
  const std::vector<std::int64_t> zeros = {0, 0};
  const std::vector<double> values = {1e308, 1e308};
  const OwnTriplets given{{world().rank() * 3, 3}, 3 * world().size(), zeros, zeros, values.data(), ValueType::f64, {}};
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

TEST(OwnRows, WrongTripletsAreRefused) {
  const std::vector<std::int64_t> rows = {0, 99}, columns = {0, 1};
  const std::vector<double> values = {1, 2};
  const OwnTriplets given{{world().rank() * 3, 3}, 3 * world().size(), rows, columns, values.data(), ValueType::f64, {}};
  const std::string message = error_of(ErrorKind::input, [&] { take_triplets(given, context_of(kHost64)); });
  EXPECT_NE(message.find("triplet 1 is (99, 1, 2)"), std::string::npos) << message;
}

}  // namespace
}  // namespace shardmat
