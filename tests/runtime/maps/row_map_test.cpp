#include "runtime/maps/row_map.h"
#include "kernels/matrix/csr.h"
#include "partition/source/partitioner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "comm/exchange/column_map.h"
#include "runtime/context/row_maps.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/own_rows.h"
#include "runtime/solvers/solver.h"
#include "runtime/source/matrix_source.h"
#include "runtime/source/transposed.h"
#include "tests/partition/test_matrices.h"
#include "tests/runtime/matrix/test_matrix.h"

namespace shardmat {
namespace {

using namespace test;

/// A·x in the order of the matrix.
std::vector<double> times(const HostCsr& a, const std::vector<double>& x) {
  std::vector<double> y(static_cast<std::size_t>(a.rows));
  for (std::size_t row = 0; row < y.size(); ++row)
    for (auto k = static_cast<std::size_t>(a.row_ptr[row]); k < static_cast<std::size_t>(a.row_ptr[row + 1]); ++k)
      y[row] += a.values[k] * x[static_cast<std::size_t>(a.col_idx[k])];
  return y;
}

std::vector<double> some_x(std::int64_t size) {
  std::vector<double> x(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = x_at(static_cast<std::int64_t>(i), 0);
  return x;
}

/// Full weighting between points in a row: row i has ¼, ½, ¼ (and other numbers at the ends) around column 2i.
HostCsr restriction(std::int64_t coarse, std::int64_t fine) {
  HostCsr r;
  r.rows = coarse, r.cols = fine;
  for (std::int64_t i = 0; i < coarse; ++i) {
    for (std::int64_t j = 2 * i - 1; j <= 2 * i + 1; ++j)
      if (j >= 0 && j < fine)
        r.col_idx.push_back(j), r.values.push_back(j == 2 * i ? 0.5 : 0.25 + 0.125 * static_cast<double>(i % 2));
    r.row_ptr.push_back(std::ssize(r.col_idx));
  }
  return r;
}

HostCsr transposed(const HostCsr& a) {
  HostCsr t;
  t.rows = a.cols, t.cols = a.rows;
  std::vector<std::vector<std::pair<std::int64_t, double>>> rows(static_cast<std::size_t>(a.cols));
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (auto k = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i)]);
         k < static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i) + 1]); ++k)
      rows[static_cast<std::size_t>(a.col_idx[k])].emplace_back(i, a.values[k]);
  for (const auto& row : rows) {
    for (const auto& [column, value] : row) t.col_idx.push_back(column), t.values.push_back(value);
    t.row_ptr.push_back(std::ssize(t.col_idx));
  }
  return t;
}

HostCsr diagonal(std::int64_t n) {
  HostCsr m;
  m.rows = m.cols = n;
  for (std::int64_t i = 0; i < n; ++i)
    m.col_idx.push_back(i), m.values.push_back(1 + 0.125 * static_cast<double>(i % 8)), m.row_ptr.push_back(i + 1);
  return m;
}

/// The range of this rank, of ranges of even lengths in the order of the ranks or against it.
RowRange range_of(std::int64_t rows, bool against) {
  const auto starts = even_starts(rows, world().size());
  const auto at = static_cast<std::size_t>(against ? world().size() - 1 - world().rank() : world().rank());
  return {starts[at], starts[at + 1] - starts[at]};
}

/// This rank's rows of a matrix, in one range.
MatrixPart rows_of(const HostCsr& a, RowRange range, const Case& c, std::string_view method = "") {
  const auto first = static_cast<std::size_t>(range.first), count = static_cast<std::size_t>(range.count);
  const auto begin = static_cast<std::size_t>(a.row_ptr[first]), end = static_cast<std::size_t>(a.row_ptr[first + count]);
  OwnRows rows{range, a.cols, std::span<const std::int64_t>(a.row_ptr).subspan(first, count + 1),
               std::span<const std::int64_t>(a.col_idx).subspan(begin, end - begin), a.values.data() + begin};
  return take_rows(rows, context_of(c), c.type, method);
}

MatrixOptions options_on(const Case& c, std::shared_ptr<const RowMap> y_rows,
                         std::shared_ptr<const RowMap> x_rows = nullptr) {
  MatrixOptions options = options_for(c);
  options.y_rows = std::move(y_rows), options.x_rows = std::move(x_rows);
  return options;
}

/// Vectors on one map, with values in the order of the matrix.
DistributedVector vector_on(const std::shared_ptr<const RowMap>& map, const Case& c, const std::vector<double>& values) {
  DistributedVector v(map, c.type);
  v.scatter(world().rank() == 0 ? std::span<const double>(values) : std::span<const double>(), context_of(c).stream());
  return v;
}

void expect_values(const DistributedVector& v, const std::vector<double>& wanted, const char* what) {
  const HostVector<double> got = v.gather(v.context().stream());
  double largest = 1;
  for (const double value : wanted) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], wanted[i], 64 * unit_roundoff(v.type()) * largest) << what << ", row " << i;
}

void multiply(DistributedMatrix& a, const DistributedVector& x, DistributedVector& y, double alpha = 1, double beta = 0) {
  Stream& stream = a.context().stream();
  const auto product = a.product(x.columns());
  product->multiply(alpha, x.view(), beta, y.view(), stream);
  product->wait(stream);
}

/// z = M (K x) and w = (K − σM) x, all on the map of K.
void check_pair(DistributedMatrix& k, DistributedMatrix& m, const HostCsr& whole_k, const HostCsr& whole_m, const Case& c,
                const char* what) {
  ASSERT_EQ(k.y_rows().get(), m.y_rows().get()) << what;
  ASSERT_EQ(k.x_rows().get(), m.x_rows().get()) << what;
  ASSERT_EQ(k.y_rows()->ids(), m.y_rows()->ids()) << what;
  const std::vector<double> x = some_x(whole_k.rows);
  const DistributedVector on_map = vector_on(k.x_rows(), c, x);
  DistributedVector y(k.y_rows(), c.type), z(m.y_rows(), c.type);
  multiply(k, on_map, y);
  multiply(m, y, z);
  const std::vector<double> kx = times(whole_k, x), mx = times(whole_m, x);
  expect_values(z, times(whole_m, kx), what);
  multiply(m, on_map, y, -0.25, 1);
  std::vector<double> shifted(kx);
  for (std::size_t i = 0; i < shifted.size(); ++i) shifted[i] -= 0.25 * mx[i];
  expect_values(y, shifted, what);
}

void pairs_on_one_map(const Case& c) {
  Context& context = context_of(c);
  const HostCsr k = whole_matrix("poisson:n=9"), m = diagonal(k.rows);
  const std::string generated = "poisson:n=9";
  {
    DistributedMatrix of_k(open_matrix(generated, world()), context, options_for(c));
    DistributedMatrix of_m(
        rows_of(m, {of_k.y_rows()->starts()[static_cast<std::size_t>(world().rank())], of_k.local_rows()}, c), context,
        options_on(c, of_k.y_rows()));
    check_pair(of_k, of_m, k, m, c, "rows given on the map of a generator's matrix");
  }
  for (const bool against : {false, true}) {
    DistributedMatrix of_m(rows_of(m, range_of(k.rows, against), c), context, options_for(c));
    LoadOptions options = options_for(c);
    options.x_rows = of_m.x_rows();  // either names the map of a square matrix
    DistributedMatrix of_k(open_matrix(generated, world()), context, options);
    check_pair(of_k, of_m, k, m, c, "a generator's matrix on ranges against the ranks");
    DistributedMatrix other(rows_of(k, range_of(k.rows, against), c), context, options_on(c, of_m.y_rows()));
    check_pair(other, of_m, k, m, c, "own rows on a map of ranges");
  }
  DistributedMatrix spread(rows_of(k, range_of(k.rows, true), c, "nnz"), context, options_for(c));
  LoadOptions options = options_for(c);
  options.y_rows = spread.y_rows();
  DistributedMatrix of_k(open_matrix(generated, world()), context, options);
  ASSERT_EQ(of_k.y_rows().get(), spread.y_rows().get());
  DistributedVector y(of_k.y_rows(), c.type);
  multiply(of_k, vector_on(spread.x_rows(), c, some_x(k.rows)), y);
  expect_values(y, times(k, some_x(k.rows)), "on rows that were spread anew");
}

/// y = P A R x over three maps; the coarse one has its ranges in any order.
void chain_of_three(const Case& c) {
  Context& context = context_of(c);
  const HostCsr a = whole_matrix("banded:n=203"), r = restriction(101, 203), p = transposed(r);
  const std::vector<double> x = some_x(a.rows);
  for (const bool against : {false, true}) {
    DistributedMatrix of_a(open_matrix("banded:n=203", world()), context, options_for(c));
    DistributedMatrix coarse(rows_of(diagonal(r.rows), range_of(r.rows, against), c), context, options_for(c));
    DistributedMatrix of_r(rows_of(r, range_of(r.rows, against), c), context, options_on(c, coarse.y_rows(), of_a.y_rows()));
    const auto rank = static_cast<std::size_t>(world().rank());
    DistributedMatrix of_p(rows_of(p, {of_a.y_rows()->starts()[rank], of_a.local_rows()}, c), context,
                           options_on(c, of_a.y_rows(), coarse.y_rows()));
    DistributedVector ax(of_a.y_rows(), c.type), rax(coarse.y_rows(), c.type), scaled(coarse.y_rows(), c.type),
        y(of_p.y_rows(), c.type);
    multiply(of_a, vector_on(of_a.x_rows(), c, x), ax);
    multiply(of_r, ax, rax);
    multiply(coarse, rax, scaled);
    multiply(of_p, scaled, y);
    expect_values(y, times(p, times(diagonal(r.rows), times(r, times(a, x)))),
                  against ? "against the ranks" : "as the ranks");
  }
}

void shared_by_ten(const Case& c) {
  Context& context = context_of(c);
  const HostCsr k = whole_matrix("banded:n=140");
  std::optional<DistributedVector> x, y;
  std::shared_ptr<const RowMap> map;
  {
    DistributedMatrix first(rows_of(k, range_of(k.rows, false), c), context, options_for(c));
    map = first.y_rows();
    x.emplace(vector_on(map, c, some_x(k.rows)));
    y.emplace(map, c.type);
  }  // map and vectors outlive the matrix
  for (int i = 0; i < 10; ++i) {
    HostCsr scaled = k;
    for (double& value : scaled.values) value *= i + 1;
    // The pattern is that of the first matrix, so that every other one finds its map without being given it.
    DistributedMatrix one(rows_of(scaled, range_of(k.rows, false), c), context,
                          i % 2 == 0 ? options_on(c, map) : MatrixOptions(options_for(c)));
    ASSERT_EQ(one.y_rows().get(), map.get()) << i;
    multiply(one, *x, *y);
    expect_values(*y, times(scaled, some_x(k.rows)), "one of ten");
  }
  EXPECT_EQ(y->rows(), 140);
}

/// The columns of this rank's rows, by their original index, are those of the whole matrix.
void check_columns(DistributedMatrix& matrix, const HostCsr& whole, const char* what) {
  const HostVector<std::int64_t> ids = matrix.column_ids();
  ASSERT_EQ(std::ssize(ids), matrix.column_map().length()) << what;
  const CsrView rows = matrix.host_rows(matrix.context().stream());
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows.rows); ++i) {
    const auto row = static_cast<std::size_t>(matrix.y_rows()->ids()[i]);
    std::vector<std::int64_t> got,
        wanted(whole.col_idx.begin() + whole.row_ptr[row], whole.col_idx.begin() + whole.row_ptr[row + 1]);
    for (std::int64_t k = rows.row_ptr[i]; k < rows.row_ptr[i + 1]; ++k)
      got.push_back(ids[static_cast<std::size_t>(rows.col_idx[static_cast<std::size_t>(k)])]);
    std::sort(got.begin(), got.end()), std::sort(wanted.begin(), wanted.end());
    ASSERT_EQ(got, wanted) << what << ", row " << row;
  }
}

void original_columns(const Case& c) {
  Context& context = context_of(c);
  for (const char* name : {"banded:n=203", "rmat:scale=6", "elasticity:n=4"})
    for (const LocalSort sort : {LocalSort::none, LocalSort::by_length}) {
      DistributedMatrix a(open_matrix(name, world()), context, options_for(c, sort));
      check_columns(a, whole_matrix(name), name);
    }
  const HostCsr r = restriction(101, 203);
  DistributedMatrix fine(rows_of(diagonal(203), range_of(203, true), c), context, options_for(c));
  DistributedMatrix of_r(rows_of(r, range_of(101, false), c), context, options_on(c, nullptr, fine.y_rows()));
  check_columns(of_r, r, "columns on a map against the ranks");
}

/// Both triangles of M, and one of K, on one map.
TEST(RowMaps, SymmetricStorageOnTheMapOfAnother) {
  const Case c = kHost64;
  const HostCsr k = whole_matrix("poisson:n=9"), m = diagonal(k.rows);
  for (const bool against : {false, true}) {
    DistributedMatrix of_m(rows_of(m, range_of(k.rows, against), c), context_of(c), options_for(c));
    LoadOptions options = options_for(c);
    options.plan.storage = StoredEntries::half, options.y_rows = of_m.y_rows();
    DistributedMatrix of_k(open_matrix("poisson:n=9", world()), context_of(c), options);
    check_pair(of_k, of_m, k, m, c, against ? "against the ranks" : "as the ranks");
  }
}

/// Matrices of the same rows that expect different numbers of right-hand sides: a vector of one has the right products with
/// the other, or is refused.
void other_widths(const Case& c) {
  Context& context = context_of(c);
  for (const char* name : {"banded:n=640", "poisson:n=12"}) {
    auto options = options_for(c);
    DistributedMatrix one(open_matrix(name, world()), context, options);
    options.right_hand_sides = 4;
    DistributedMatrix four(open_matrix(name, world()), context, options);
    const HostCsr k = whole_matrix(name);
    const DistributedVector x = vector_on(one.x_rows(), c, some_x(k.rows));
    DistributedVector y(one.y_rows(), c.type), z(four.y_rows(), c.type);
    multiply(one, x, y);
    if (one.y_rows()->number() == four.x_rows()->number()) {
      multiply(four, y, z);
      expect_values(z, times(k, times(k, some_x(k.rows))), name);
    } else {
      const auto product = four.product(1);
      error_of(ErrorKind::usage, [&] { product->multiply(1, y.view(), 0, z.view(), context.stream()); });
    }
  }
}

SHARDMAT_MATRIX_TEST(RowMaps, OtherWidths, other_widths)
SHARDMAT_MATRIX_TEST(RowMaps, OriginalColumns, original_columns)
SHARDMAT_MATRIX_TEST(RowMaps, PairsOnOneMap, pairs_on_one_map)
SHARDMAT_MATRIX_TEST(RowMaps, ChainOfThree, chain_of_three)
SHARDMAT_MATRIX_TEST(RowMaps, SharedByTen, shared_by_ten)

TEST(RowMaps, VectorsOfAnotherMapAreRefused) {
  Context& context = context_of(kHost64);
  const HostCsr k = whole_matrix("banded:n=640"), m = diagonal(640);
  MatrixOptions overlapping = options_for(kHost64);
  overlapping.overlap = Overlap::yes;
  DistributedMatrix of_k(rows_of(k, range_of(640, false), kHost64), context, overlapping),
      of_m(rows_of(m, range_of(640, false), kHost64), context, overlapping);
  const DistributedVector x = vector_on(of_k.x_rows(), kHost64, some_x(640));
  DistributedVector y(of_k.y_rows(), ValueType::f64), z(of_m.y_rows(), ValueType::f64);
  multiply(of_k, x, y);
  if (world().size() == 1) {  // both lie in the order of the rows
    ASSERT_EQ(of_k.y_rows().get(), of_m.y_rows().get());
    return multiply(of_m, y, z), expect_values(z, times(m, times(k, some_x(640))), "one rank");
  }
  ASSERT_NE(of_k.y_rows()->number(), of_m.y_rows()->number());
  const auto product = of_m.product(1);
  const std::string of_x =
      error_of(ErrorKind::usage, [&] { product->multiply(1, y.view(), 0, z.view(), context.stream()); });
  for (const RowMap* map : {of_k.y_rows().get(), of_m.y_rows().get()})
    EXPECT_NE(of_x.find(fmt::format("{:016x}", map->number())), std::string::npos) << of_x;
  EXPECT_NE(
      error_of(ErrorKind::usage, [&] { product->multiply(1, z.view(), 0, y.view(), context.stream()); }).find("Y lies"),
      std::string::npos);
  VectorSums sums(context, 1);
  double sum = 0;
  EXPECT_NE(error_of(ErrorKind::usage, [&] { sums.dot(y, z, &sum, context.stream()); }).find("different row maps"),
            std::string::npos);
  SolverOptions gmres;
  gmres.solver = "gmres";
  Solver solver(of_k, gmres);
  error_of(ErrorKind::usage, [&] { solver.solve(z, y); });
}

/// Nonzeros of this rank's rows [range) of `a`: all, of rows that need no x of other ranks, and of those before the first
/// row that does.
struct Shares {
  std::int64_t all = 0, interior = 0, before = 0;
};
Shares shares_of(const HostCsr& a, RowRange range, RowRange own) {
  Shares shares;
  bool in_front = true;
  for (auto i = static_cast<std::size_t>(range.first); i < static_cast<std::size_t>(range.first + range.count); ++i) {
    const auto begin = a.col_idx.begin() + a.row_ptr[i], end = a.col_idx.begin() + a.row_ptr[i + 1];
    const bool waits =
        std::any_of(begin, end, [&](std::int64_t column) { return column < own.first || column >= own.first + own.count; });
    in_front = in_front && !waits;
    shares.all += end - begin, shares.interior += waits ? 0 : end - begin, shares.before += in_front ? end - begin : 0;
  }
  return shares;
}

/// "12 %", or "0 to 40 %", of the ranks' nonzeros.
std::string percent_of_ranks(std::int64_t part, std::int64_t all) {
  const std::vector<double> each = world().all_gather(100.0 * static_cast<double>(part) / static_cast<double>(all));
  const std::string least = fmt::format("{:.0f}", *std::min_element(each.begin(), each.end())),
                    most = fmt::format("{:.0f}", *std::max_element(each.begin(), each.end()));
  return least == most ? most + " %" : fmt::format("{} to {} %", least, most);
}

/// Rows that need no x of other ranks are multiplied while it moves, as far as their order allows, and the product says what
/// keeps others waiting.
TEST(RowMaps, OverlapInAGivenOrder) {
  Context& context = context_of(kHost64);
  const HostCsr k = whole_matrix("banded:n=640");
  const RowRange mine = range_of(640, false);
  const Shares shares = shares_of(k, mine, mine);
  const auto expect = [&](const MatrixOptions& options, std::int64_t overlapped, const std::string& why) {
    DistributedMatrix of_k(rows_of(k, mine, kHost64), context, options);
    const auto product = of_k.product(1);
    EXPECT_EQ(product->overlapped_nnz, overlapped);
    EXPECT_EQ(product->why_rows_wait, why);
  };
  DistributedMatrix of_m(rows_of(diagonal(640), mine, kHost64), context, options_for(kHost64));
  MatrixOptions natural = options_for(kHost64), none = options_for(kHost64);
  natural.natural_order = true, none.overlap = Overlap::no;
  if (world().size() == 1) {
    for (const MatrixOptions& options : {MatrixOptions(options_for(kHost64)), natural, none}) expect(options, 0, "");
    return;
  }
  const bool half = 2 * shares.interior >= shares.all, half_before = 2 * shares.before >= shares.all;
  const bool all_half = world().all_reduce(half ? 1 : 0, Reduction::min) == 1;
  ASSERT_TRUE(all_half) << "a matrix whose boundary is small";
  expect(options_for(kHost64), shares.interior, "");
  const std::string given = fmt::format(
      ": those before the first row that needs x of other ranks hold {} of a rank's nonzeros, all that need none hold {}; "
      "ranks where they hold less than half wait for x",
      percent_of_ranks(shares.before, shares.all), percent_of_ranks(shares.interior, shares.all));
  expect(options_on(kHost64, of_m.y_rows()), half_before ? shares.before : 0,
         "the rows lie on the map of another matrix" + given);
  expect(natural, half_before ? shares.before : 0, "the rows lie in their natural order" + given);
  EXPECT_EQ(world().all_reduce(half_before ? 1 : 0, Reduction::sum), 1) << "only rank 0 needs x of later ranks alone";
  expect(none, 0, "rows wait for x, as asked for");
  const auto eight = of_m.product(8);
  EXPECT_EQ(eight->why_rows_wait,
            "kernels for several right-hand sides multiply all rows at once unless overlap is asked for");
  // In the order of a matrix with the same boundary nothing is lost.
  DistributedMatrix first(rows_of(k, mine, kHost64), context, options_for(kHost64));
  expect(options_on(kHost64, first.y_rows()), shares.interior, "");
}

/// The map says which x a rank owns, also of a matrix that is not square: other rows must not be multiplied before it moved.
TEST(RowMaps, OverlapOnAMapOfUnevenRanges) {
  Context& context = context_of(kHost64);
  const HostCsr p = transposed(restriction(400, 800));
  const std::int64_t ranks = world().size(), rank = world().rank(), step = 400 / (ranks * (ranks + 1) / 2);
  const std::int64_t first = step * rank * (rank + 1) / 2, end = rank + 1 == ranks ? 400 : first + step * (rank + 1);
  const RowRange coarse{first, end - first};  // every rank has more than the one before
  DistributedMatrix on_coarse(rows_of(diagonal(400), coarse, kHost64), context, options_for(kHost64));
  const RowRange fine{2 * first, 2 * (end - first)};
  DistributedMatrix of_p(rows_of(p, fine, kHost64), context, options_on(kHost64, nullptr, on_coarse.x_rows()));
  const auto product = of_p.product(1);
  if (ranks > 1) {
    const Shares shares = shares_of(p, fine, coarse);
    EXPECT_EQ(product->overlapped_nnz, shares.interior < shares.all ? shares.interior : 0);
  }
  DistributedVector y(of_p.y_rows(), ValueType::f64);
  multiply(of_p, vector_on(on_coarse.x_rows(), kHost64, some_x(400)), y);
  expect_values(y, times(p, some_x(400)), "on uneven ranges");
  DistributedVector z(on_coarse.x_rows(), kHost64.type);
  const auto back = of_p.transposed_product(1);
  back->multiply(1, y.view(), 0, z.view(), context.stream());
  back->wait(context.stream());
  expect_values(z, times(restriction(400, 800), times(p, some_x(400))), "the transpose on uneven ranges");
}

TEST(RowMaps, NumbersAreAlikeOnAllRanks) {
  Context& context = context_of(kHost64);
  DistributedMatrix k(open_matrix("poisson:n=6", world()), context, options_for(kHost64)),
      sorted(open_matrix("banded:n=50", world()), context, options_for(kHost64, LocalSort::by_length));
  for (const RowMap* map : {k.y_rows().get(), sorted.y_rows().get()}) {
    for (const std::uint64_t number : world().all_gather(map->number())) EXPECT_EQ(number, map->number());
    EXPECT_NE(map->number(), 0u);
  }
  EXPECT_NE(k.y_rows()->number(), sorted.y_rows()->number());
}

TEST(RowMaps, NaturalOrder) {
  MatrixOptions options = options_for(kHost64);
  options.natural_order = true;
  const HostCsr k = whole_matrix("banded:n=90");
  DistributedMatrix matrix(rows_of(k, range_of(90, true), kHost64), context_of(kHost64), options);
  EXPECT_TRUE(matrix.y_rows()->in_source_order());
  EXPECT_EQ(matrix.y_rows()->is_range(), matrix.local_rows() > 0);
  DistributedVector y(matrix.y_rows(), ValueType::f64);
  multiply(matrix, vector_on(matrix.x_rows(), kHost64, some_x(90)), y);
  expect_values(y, times(k, some_x(90)), "natural order");
}

/// Text is read by all ranks, each of which keeps the rows of its part.
TEST(RowMaps, TextOnTheMapOfOtherRows) {
  const TemporaryDirectory directory;
  const HostCsr k = whole_matrix("banded:n=80");
  const std::string path = world().all_gather((directory / "k.mtx").string())[0];
  world().run_agreed([&] {
    if (world().rank() != 0) return;
    std::ofstream file(path);
    file << "%%MatrixMarket matrix coordinate real general\n80 80 " << k.nnz() << "\n";
    for (std::size_t i = 0; i < 80; ++i)
      for (auto j = static_cast<std::size_t>(k.row_ptr[i]); j < static_cast<std::size_t>(k.row_ptr[i + 1]); ++j)
        file << i + 1 << " " << k.col_idx[j] + 1 << " " << fmt::format("{}", k.values[j]) << "\n";
  });
  Context& context = context_of(kHost64);
  DistributedMatrix m(rows_of(diagonal(80), range_of(80, true), kHost64), context, options_for(kHost64));
  LoadOptions options = options_for(kHost64);
  options.y_rows = m.y_rows();
  DistributedMatrix of_k(open_matrix(path, world()), context, options);
  check_pair(of_k, m, k, diagonal(80), kHost64, "text");
  world().barrier();  // before rank 0 removes the file
}

TEST(RowMaps, MapsThatDoNotFitAreRefused) {
  Context& context = context_of(kHost64);
  const HostCsr k = whole_matrix("banded:n=60"), r = restriction(30, 60);
  DistributedMatrix of_k(rows_of(k, range_of(60, false), kHost64), context, options_for(kHost64)),
      other(rows_of(k, range_of(60, true), kHost64), context, options_for(kHost64));
  const auto refused = [&](const HostCsr& a, std::shared_ptr<const RowMap> y, std::shared_ptr<const RowMap> x) {
    return error_of(ErrorKind::usage, [&] {
      DistributedMatrix(rows_of(a, range_of(a.rows, false), kHost64), context, options_on(kHost64, y, x));
    });
  };
  EXPECT_NE(refused(r, of_k.y_rows(), nullptr).find("y_rows has 60 rows, but the matrix has 30 rows"), std::string::npos);
  EXPECT_NE(refused(transposed(r), nullptr, of_k.y_rows()).find("x_rows has 60 rows, but the matrix has 30 columns"),
            std::string::npos);
  if (world().size() == 1) return;
  EXPECT_NE(refused(k, other.y_rows(), nullptr).find("does not. Give each rank the rows of the map"), std::string::npos);
  EXPECT_NE(refused(k, of_k.y_rows(), other.y_rows()).find("a square matrix has one for both"), std::string::npos);
}

}  // namespace
}  // namespace shardmat
