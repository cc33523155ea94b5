// Feeder ranks against the same matrix on the owners alone, whose rows are those of their groups: all bits are the same.
#include "runtime/shared_gpu/group_matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "partition/generators/generator.h"
#include "partition/source/row_source.h"
#include "runtime/shared_gpu/group_solver.h"
#include "tests/support/world.h"

namespace shardmat {
namespace {

constexpr std::int64_t kNodes = 5;

/// Rows of the whole matrix, of which each rank gives uneven pieces; rank 1 of more than two has none.
struct Problem {
  HostCsr all;
  std::vector<std::int64_t> starts;  ///< of each rank

  explicit Problem(const std::string& generator = "elasticity:n=" + std::to_string(kNodes)) {
    const auto source = make_generator(generator);
    all = source->read_rows(0, source->rows());
    starts.push_back(0);
    const int ranks = world().size();
    std::int64_t shares = 0, before = 0;
    const auto share = [&](int rank) -> std::int64_t { return ranks > 2 && rank == 1 ? 0 : 1 + rank % 3; };
    for (int rank = 0; rank < ranks; ++rank) shares += share(rank);
    for (int rank = 0; rank < ranks; ++rank) starts.push_back(all.rows * (before += share(rank)) / shares);
  }

  std::int64_t first(int rank) const { return starts[static_cast<std::size_t>(rank)]; }
  /// Rows [begin, end), with offsets that do not begin at 0.
  OwnRows rows(std::int64_t begin, std::int64_t end) const {
    OwnRows own;
    own.range = {begin, end - begin}, own.cols = all.cols;
    const auto from = static_cast<std::size_t>(all.row_ptr[static_cast<std::size_t>(begin)]),
               to = static_cast<std::size_t>(all.row_ptr[static_cast<std::size_t>(end)]);
    own.row_ptr = std::span(all.row_ptr).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin) + 1);
    own.columns = std::span(all.col_idx).subspan(from, to - from);
    own.values = all.values.data() + from;
    return own;
  }
  OwnRows mine() const { return rows(first(world().rank()), first(world().rank() + 1)); }
};

HostVector<double> entries(std::int64_t begin, std::int64_t end, std::int64_t columns) {
  HostVector<double> values;
  for (std::int64_t i = begin; i < end; ++i)
    for (std::int64_t j = 0; j < columns; ++j) values.push_back(static_cast<double>((i * 7 + j * 5) % 23) / 7 - 1);
  return values;
}

Dense rows_of(HostVector<double>& values, std::int64_t columns) {
  return {values.data(), std::ssize(values) / columns, columns, columns, DenseOrder::row_major, ValueType::f64, Device{}};
}

GroupContextOptions on_host(int owners) {
  GroupContextOptions options;
  options.backend = BackendChoice::host;
  options.threads = 1;
  options.groups.owners = owners;
  return options;
}

MatrixOptions updatable() {
  MatrixOptions options;
  options.values = Values::updatable;
  options.plan.kernel = "csr_host";
  return options;
}

HostVector<double> all_values(const OwnRows& rows, double factor) {
  HostVector<double> values;
  for (std::size_t k = 0; k < rows.columns.size(); ++k)
    values.push_back(factor * static_cast<const double*>(rows.values.data)[k]);
  return values;
}

/// The matrix of a problem on the owners alone, whose own rows are those of their groups.
class OnOwners {
 public:
  OnOwners(const Problem& problem, GroupContext& fed, const MatrixOptions& options) {
    if (!fed.owns()) return;
    RankGroup& group = fed.group();
    begin_ = problem.first(world().rank()), end_ = problem.first(world().rank() + group.size());
    rows_ = problem.rows(begin_, end_);
    context_.emplace(group.owners(), GroupContextOptions{BackendChoice::host, 1, {}});
    matrix_ = std::make_unique<GroupMatrix>(*context_, [&] { return GivenRows{rows_, options, ""}; });
  }
  GroupMatrix* matrix() { return matrix_.get(); }
  std::int64_t begin() const { return begin_; }
  std::int64_t end() const { return end_; }
  const OwnRows& rows() const { return rows_; }

 private:
  std::optional<GroupContext> context_;
  std::unique_ptr<GroupMatrix> matrix_;
  std::int64_t begin_ = 0, end_ = 0;
  OwnRows rows_;
};

/// What the owner alone has, cut into the pieces of its group: this rank's piece, by way of all ranks.
HostVector<double> piece_of(const HostVector<double>& of_group, const Problem& problem, std::int64_t columns) {
  std::vector<double> all(static_cast<std::size_t>(problem.all.rows * columns), 0.0);
  const std::int64_t begin = problem.first(world().rank()) * columns;
  std::copy(of_group.begin(), of_group.end(), all.begin() + begin);
  world().all_reduce(std::span<double>(all), Reduction::sum);  // each row comes from one rank; adding 0 changes no bits
  return {all.begin() + begin, all.begin() + problem.first(world().rank() + 1) * columns};
}

void multiplies(int owners, std::int64_t columns) {
  SCOPED_TRACE(std::to_string(owners) + " owners, " + std::to_string(columns) + " columns");
  const Problem problem;
  GroupContext context(world(), on_host(owners));
  ASSERT_TRUE(context.has_feeders());
  GroupMatrix a(context, [&] { return GivenRows{problem.mine(), updatable(), ""}; });
  EXPECT_EQ(a.nnz(), problem.all.nnz());
  const std::int64_t begin = problem.first(world().rank()), end = problem.first(world().rank() + 1);
  EXPECT_EQ(a.own_rows(), end - begin);
  OnOwners alone(problem, context, updatable());
  const auto options = [&] {
    ProductOptions wanted;
    wanted.columns = columns;
    return wanted;
  };
  GroupProduct product = a.product(options);
  EXPECT_NE(product.kernel.find("csr_host"), std::string::npos);
  std::optional<GroupProduct> reference;
  if (alone.matrix() != nullptr) reference = alone.matrix()->product(options);
  for (const double factor : {1.0, -3.5}) {  // the given values, then new ones
    if (factor != 1) {
      HostVector<double> values = all_values(problem.mine(), factor);
      a.update_values([&] { return rows_of(values, 1); }, context.stream());
      if (alone.matrix() != nullptr) {
        values = all_values(alone.rows(), factor);
        alone.matrix()->update_values([&] { return rows_of(values, 1); }, context.stream());
      }
    }
    HostVector<double> x = entries(begin, end, columns), y = entries(begin + 1, end + 1, columns);
    a.multiply(product, 2, rows_of(x, columns), -0.5, rows_of(y, columns), context.stream());
    HostVector<double> x_of_group = entries(alone.begin(), alone.end(), columns),
                       y_of_group = entries(alone.begin() + 1, alone.end() + 1, columns);
    if (reference)
      alone.matrix()->multiply(*reference, 2, rows_of(x_of_group, columns), -0.5, rows_of(y_of_group, columns),
                               context.stream());
    EXPECT_EQ(y, piece_of(y_of_group, problem, columns));
  }
}

testing::AssertionResult says(const std::string& message, const std::string& words) {
  if (message.find(words) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << message << "\" does not say \"" << words << "\"";
}

/// check(owners) for the numbers of owners that leave feeders.
template <class Check>
void for_owners(const Check& check) {
  if (world().size() == 1) GTEST_SKIP() << "needs several ranks";
  for (const int owners : {1, 2}) {
    if (owners >= world().size()) continue;
    SCOPED_TRACE(std::to_string(owners) + " owners");
    check(owners);
  }
}

TEST(Feeders, ProductsHaveTheBitsOfTheOwnersAlone) {
  for_owners([](int owners) {
    for (const std::int64_t columns : {1, 3}) multiplies(owners, columns);
  });
}

TEST(Feeders, SolvesTakeTheStepsOfTheOwnersAlone) {
  for_owners([](int owners) {
    const Problem problem("elasticity:n=5,clamp=0.02");
    GroupContext context(world(), on_host(owners));
    GroupMatrix a(context, [&] { return GivenRows{problem.mine(), updatable(), ""}; });
    OnOwners alone(problem, context, updatable());
    const std::int64_t begin = problem.first(world().rank()), end = problem.first(world().rank() + 1);
    const auto options = [] {
      SolverOptions wanted;
      wanted.preconditioner = "jacobi";
      wanted.variant = CgVariant::classic;
      return wanted;
    };
    GroupSolver solver(a, options);
    std::optional<GroupSolver> reference;
    if (alone.matrix() != nullptr) reference.emplace(*alone.matrix(), options);
    HostVector<double> b = entries(begin, end, 1), x(b.size(), 0.0), b_of_group = entries(alone.begin(), alone.end(), 1),
                       x_of_group(b_of_group.size(), 0.0);
    const SolveResult result = solver.solve([&] { return rows_of(b, 1); }, [&] { return rows_of(x, 1); });
    SolveResult expected;
    if (reference)
      expected = reference->solve([&] { return rows_of(b_of_group, 1); }, [&] { return rows_of(x_of_group, 1); });
    EXPECT_TRUE(result.converged());
    EXPECT_EQ(x, piece_of(x_of_group, problem, 1));
    if (!reference) EXPECT_GT(std::ssize(result.columns.at(0).history), 2);
    else EXPECT_EQ(result.columns.at(0).history, expected.columns.at(0).history);
    EXPECT_EQ(world().all_reduce(result.iterations, Reduction::min), result.iterations);
    EXPECT_EQ(world().all_reduce(result.columns.at(0).true_residual, Reduction::min), result.columns.at(0).true_residual);
  });
}

/// b and x in another type and order, with gaps, give the bits of the same entries in f64, row by row.
TEST(Feeders, SolvesTakeVectorsOfAnyTypeAndOrder) {
  for_owners([](int owners) {
    const Problem problem("elasticity:n=5,clamp=0.02");
    GroupContext context(world(), on_host(owners));
    GroupMatrix a(context, [&] { return GivenRows{problem.mine(), updatable(), ""}; });
    constexpr std::int64_t kColumns = 2;
    GroupSolver solver(a, [] {
      SolverOptions options;
      options.preconditioner = "jacobi", options.columns = kColumns;
      options.variant = CgVariant::classic;
      return options;
    });
    const std::int64_t begin = problem.first(world().rank()), rows = a.own_rows(), leading = rows + 3;
    HostVector<double> b = entries(begin, begin + rows, kColumns), x(b.size(), 0.0);
    const auto size = static_cast<std::size_t>(leading * kColumns);
    std::vector<float> b_by_columns(size, 7.0F), x_by_columns(size, 7.0F);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < kColumns; ++j) {
        double& entry = b[static_cast<std::size_t>(i * kColumns + j)];
        const auto place = static_cast<std::size_t>(i + j * leading);
        b_by_columns[place] = static_cast<float>(entry), x_by_columns[place] = 0;
        entry = static_cast<double>(b_by_columns[place]);
      }
    const auto by_columns = [&](std::vector<float>& values) {
      return Dense{values.data(), rows, kColumns, leading, DenseOrder::column_major, ValueType::f32, Device{}};
    };
    const SolveResult expected = solver.solve([&] { return rows_of(b, kColumns); }, [&] { return rows_of(x, kColumns); });
    const SolveResult result =
        solver.solve([&] { return by_columns(b_by_columns); }, [&] { return by_columns(x_by_columns); });
    EXPECT_TRUE(result.converged());
    EXPECT_EQ(result.columns.at(1).history, expected.columns.at(1).history);
    for (std::int64_t j = 0; j < kColumns; ++j)
      for (std::int64_t i = 0; i < leading; ++i)
        EXPECT_EQ(x_by_columns[static_cast<std::size_t>(i + j * leading)],
                  i < rows ? static_cast<float>(x[static_cast<std::size_t>(i * kColumns + j)]) : 7.0F);
  });
}

/// A solve that takes thousands of iterations: the last rank sees some of them, and ends it on all ranks.
TEST(Feeders, MonitorsMayEndASolve) {
  if (world().size() == 1) GTEST_SKIP() << "needs several ranks";
  const Problem problem("elasticity:n=16,clamp=0.02");
  GroupContext context(world(), on_host(1));
  GroupMatrix a(context, [&] { return GivenRows{problem.mine(), updatable(), ""}; });
  GroupSolver solver(a, [] {
    SolverOptions options;
    options.solver = "gmres", options.preconditioner = "none", options.restart = 2;
    options.rtol = 1e-14, options.max_iterations = 100'000'000;
    return options;
  });
  const bool ends_it = world().rank() == world().size() - 1;
  std::int64_t seen = 0;
  SolveControl control;
  control.monitor = [&](std::int64_t iterations, const std::vector<double>& norms, const std::vector<double>&) {
    EXPECT_GT(iterations, seen);
    EXPECT_EQ(norms.size(), 1u);
    seen = iterations;
  };
  control.stop = [&] { return ends_it && seen > 0; };
  HostVector<double> b(static_cast<std::size_t>(a.own_rows()), 1.0), x(b.size(), 0.0);
  const SolveResult result = solver.solve([&] { return rows_of(b, 1); }, [&] { return rows_of(x, 1); }, control);
  EXPECT_EQ(result.columns.at(0).reason, SolveReason::interrupted) << explain(result.columns.at(0).reason);
  EXPECT_GT(seen, 0);
}

/// A matrix that is not square: x lies in even shares of what the owners have.
TEST(Feeders, TallMatricesHaveSharesOfX) {
  for_owners([](int owners) {
    GroupContext context(world(), on_host(owners));
    const std::int64_t rank = world().rank(), ranks = world().size(), cols = 2 * ranks + 1;
    // Row i has 1 in the columns i and i + 1 (mod cols); each rank has rank + 1 rows.
    const std::int64_t first = rank * (rank + 1) / 2, count = rank + 1;
    std::vector<std::int64_t> row_ptr{0}, columns;
    for (std::int64_t i = first; i < first + count; ++i) {
      columns.push_back(i % cols), columns.push_back((i + 1) % cols);
      row_ptr.push_back(std::ssize(columns));
    }
    const std::vector<float> values(columns.size(), 1);
    GroupMatrix a(context, [&] {
      OwnRows own;
      own.range = {first, count}, own.cols = cols;
      own.row_ptr = row_ptr, own.columns = columns, own.values = values.data();
      MatrixOptions options;
      options.type = ValueType::f64;
      return GivenRows{own, options, ""};
    });
    const HostVector<std::int64_t> ids = a.ids(VectorLayout::columns);
    ASSERT_EQ(std::ssize(ids), a.own_cols());
    EXPECT_EQ(world().all_reduce(a.own_cols(), Reduction::sum), cols);
    HostVector<double> x, y(static_cast<std::size_t>(count), -1.0);
    for (const std::int64_t id : ids) x.push_back(static_cast<double>(id * id));
    GroupProduct product = a.product([] { return ProductOptions(); });
    Dense of_x = rows_of(x, 1);
    of_x.rows = std::ssize(x);
    a.multiply(product, 1, of_x, 0, rows_of(y, 1), context.stream());
    const HostVector<std::int64_t> rows = a.ids(VectorLayout::rows);
    for (std::int64_t i = 0; i < count; ++i) {
      EXPECT_EQ(rows[static_cast<std::size_t>(i)], first + i);
      const std::int64_t here = (first + i) % cols, next = (first + i + 1) % cols;
      EXPECT_EQ(y[static_cast<std::size_t>(i)], static_cast<double>(here * here + next * next));
    }
  });
}

/// Ranks have their rows in the opposite order, so that those of a group do not follow each other.
TEST(Feeders, RowsOfAGroupMayLieAnywhere) {
  for_owners([](int owners) {
    Problem problem("poisson27:n=5");
    for (double& value : problem.all.values) value = std::round(value);  // sums are exact
    const int partner = world().size() - 1 - world().rank();
    const std::int64_t begin = problem.first(partner), end = problem.first(partner + 1);
    const OwnRows mine = problem.rows(begin, end);
    const HostVector<double> all_x = entries(0, problem.all.rows, 1);
    HostVector<double> x, y(static_cast<std::size_t>(end - begin), 0.0), expected;
    for (std::int64_t i = begin; i < end; ++i) x.push_back(std::floor(7 * all_x[static_cast<std::size_t>(i)]));
    for (std::int64_t i = begin; i < end; ++i) {
      double sum = 0;
      for (auto k = static_cast<std::size_t>(problem.all.row_ptr[static_cast<std::size_t>(i)]);
           k < static_cast<std::size_t>(problem.all.row_ptr[static_cast<std::size_t>(i) + 1]); ++k)
        sum += problem.all.values[k] * std::floor(7 * all_x[static_cast<std::size_t>(problem.all.col_idx[k])]);
      expected.push_back(sum);
    }
    GroupContext context(world(), on_host(owners));
    const auto check = [&](GroupMatrix& a, const char* how) {
      GroupProduct product = a.product([] { return ProductOptions(); });
      a.multiply(product, 1, rows_of(x, 1), 0, rows_of(y, 1), context.stream());
      EXPECT_EQ(y, expected) << how;
      const HostVector<std::int64_t> ids = a.ids(VectorLayout::rows);
      EXPECT_TRUE(ids.empty() || (ids.front() == begin && ids.back() == end - 1)) << how;
    };
    GroupMatrix of_rows(context, [&] { return GivenRows{mine, updatable(), ""}; });
    check(of_rows, "rows");
    std::vector<std::int64_t> rows;
    for (std::int64_t i = begin; i < end; ++i)
      rows.insert(rows.end(),
                  static_cast<std::size_t>(mine.row_ptr[static_cast<std::size_t>(i - begin) + 1] -
                                           mine.row_ptr[static_cast<std::size_t>(i - begin)]),
                  i);
    GroupMatrix of_triplets(context, [&] {
      OwnTriplets given;
      given.range = mine.range, given.cols = mine.cols;
      given.rows = rows, given.columns = mine.columns, given.values = mine.values;
      return GivenTriplets{given, updatable(), ""};
    });
    check(of_triplets, "triplets");
    // A row number that is wrong is named as the caller knows it.
    std::vector<std::int64_t> columns(mine.columns.begin(), mine.columns.end());
    if (partner == 0) columns.front() = -5;
    EXPECT_TRUE(says(error_of(ErrorKind::input,
                              [&] {
                                GroupMatrix wrong(context, [&] {
                                  OwnRows given = mine;
                                  given.columns = columns;
                                  return GivenRows{given, updatable(), ""};
                                });
                              }),
                     "row 0 has column -5"));
    if (owners > 1) return;  // of three ranks, one without rows, each group of two owners has one range
    const std::string spread = error_of(ErrorKind::usage, [&] {
      GroupMatrix wrong(context, [&] { return GivenRows{mine, updatable(), "nnz"}; });
    });
    EXPECT_TRUE(says(spread, "rows that follow each other"));
  });
}

/// What is wrong on one rank is an error of all ranks, and everything stays usable.
TEST(Feeders, ErrorsOfOneRankReachAll) {
  for_owners([](int owners) {
    const Problem problem;
    GroupContext context(world(), on_host(owners));
    const int last = world().size() - 1;  // a feeder
    const auto make = [&](const std::function<void(OwnRows&)>& change) {
      return error_of(ErrorKind::input, [&] {
        GroupMatrix a(context, [&] {
          OwnRows rows = problem.mine();
          if (world().rank() == last) change(rows);
          return GivenRows{rows, updatable(), ""};
        });
      });
    };
    EXPECT_TRUE(says(make([](OwnRows& rows) { rows.columns = rows.columns.first(rows.columns.size() - 1); }),
                     "rank " + std::to_string(last)));
    std::vector<std::int64_t> columns(problem.mine().columns.begin(), problem.mine().columns.end());
    if (!columns.empty()) columns.back() = problem.all.cols;  // found by the owner
    EXPECT_TRUE(says(make([&](OwnRows& rows) { rows.columns = columns; }), "column " + std::to_string(problem.all.cols)));
    EXPECT_TRUE(says(make([](OwnRows& rows) { rows.range.first += 1; }), "belong to no rank"));

    GroupMatrix a(context, [&] { return GivenRows{problem.mine(), updatable(), ""}; });
    const auto wanted = [&] {
      ProductOptions options;
      if (world().rank() == last) throw Error(ErrorKind::usage, "no such product");
      return options;
    };
    EXPECT_TRUE(says(error_of(ErrorKind::usage, [&] { a.product(wanted); }), "no such product"));
    HostVector<double> too_few(1);
    EXPECT_TRUE(
        says(error_of(ErrorKind::usage, [&] { a.update_values([&] { return rows_of(too_few, 1); }, context.stream()); }),
             "1 new values"));
    EXPECT_FALSE(a.product([] { return ProductOptions(); }).kernel.empty());
    if (context.owns()) return;
    EXPECT_TRUE(says(error_of(ErrorKind::usage, [&] { a.matrix(); }), "no device of its own"));
  });
}

TEST(Feeders, OtherCallsOnAFeederAreRefused) {
  for_owners([](int owners) {
    GroupContext context(world(), on_host(owners));
    const auto none = [] { return std::vector<Operand>(); };
    const char* const name = world().rank() == world().size() - 1 ? "one call" : "another call";
    const std::string error = error_of(ErrorKind::usage, [&] {
      context.group().call(name, none, [](std::span<const GroupOperand>) { return std::string("not called"); });
    });
    EXPECT_TRUE(says(error, "one call"));
    EXPECT_TRUE(says(error, "the same calls in the same order"));
    EXPECT_EQ(context.group().call("a call", none, [](std::span<const GroupOperand>) { return std::string("done"); }),
              "done");
  });
}

TEST(Feeders, OnTheHostEveryRankOwnsItsRowsUnlessAsked) {
  GroupContext context(world(), on_host(0));
  EXPECT_FALSE(context.has_feeders());
  EXPECT_TRUE(context.owns());
  EXPECT_TRUE(says(error_of(ErrorKind::usage, [] { GroupContext(world(), on_host(-1)); }), "-1 owners"));
}

}  // namespace
}  // namespace shardmat
