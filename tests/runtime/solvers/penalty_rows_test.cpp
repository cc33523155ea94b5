// Rows that state known values, while a solver lives.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/matrix/vectors.h"
#include "runtime/solvers/loop/random_entries.h"
#include "runtime/solvers/solver.h"
#include "runtime/source/matrix_source.h"
#include "tests/runtime/matrix/test_matrix.h"
#include "tests/runtime/solvers/own_system.h"

namespace shardmat {
namespace {

using namespace test;

TEST(PenaltyRows, RefreshKeepsPenaltyRowsWhoseHostRowsWereDropped) {
  Context& context = context_of(kHost64);
  LoadOptions matrix_options = options_for(kHost64, LocalSort::none);
  matrix_options.values = Values::updatable;
  for (const PenaltyRows choice : {PenaltyRows::automatic, PenaltyRows::known}) {
    DistributedMatrix matrix(open_matrix("poisson27:n=5", world()), context, matrix_options);
    Stream& stream = context.stream();
    matrix.zero_rows_columns(std::vector<std::int64_t>{3, 77}, 1e30, nullptr, nullptr, stream);
    SolverOptions options;
    options.preconditioner = "jacobi", options.penalty_rows = choice;
    Solver solver(matrix, options);
    DistributedVector b(matrix, VectorLayout::rows, ValueType::f64), x(matrix, VectorLayout::rows, ValueType::f64);
    fill_random(b, 3, Entries::fractions, stream);
    EXPECT_EQ(solver.solve(b, x).penalty_rows, 2);
    const auto expected = x.own(stream);
    matrix.drop_host_rows();
    solver.refresh();
    x.fill(0, stream);
    EXPECT_EQ(solver.solve(b, x).penalty_rows, 2);
    EXPECT_EQ(x.own(stream), expected);
    if (choice == PenaltyRows::known) {
      EXPECT_NE(error_of(ErrorKind::usage, [&] { Solver(matrix, options); }).find("host rows"), std::string::npos);
    }
  }
}

/// A band of three with these entries on the diagonal; 0: none is stored.
template <class Diagonal>
HostCsr band(const Diagonal& diagonal) {
  return csr_of(6000, [&](std::int64_t i, const auto& add) {
    add(i - 1, -1);
    if (diagonal(i) != 0) add(i, diagonal(i));
    add(i + 1, -1);
  });
}

/// Where the rows lie on a GPU, they are looked at there: with the same findings.
void are_found_wherever_the_rows_lie(const Case& c) {
  const HostCsr a = band([](std::int64_t i) { return i == 3 || i == 4321 ? kPenalty : 4 + static_cast<double>(i % 3); });
  for (const char* const preconditioner : {"auto", "jacobi", "multigrid", "none"})
    for (const Values values : {Values::fixed, Values::updatable}) {
      SCOPED_TRACE(preconditioner);
      Own own(a, context_of(c), 1, {c.type, false, 1, values});
      SolverOptions options;
      options.preconditioner = preconditioner;
      Solver solver(*own.matrix, options);
      const SolveResult result = solver.solve(*own.b, *own.x);
      EXPECT_TRUE(result.converged());
      EXPECT_EQ(result.penalty_rows, 2);
      EXPECT_NEAR(result.penalty_ratio, kPenalty / 5, 1e-6 * kPenalty);
      EXPECT_LT(own.backward_error(), c.type == ValueType::f64 ? 1e-6 : 1e-4);
    }
}
SHARDMAT_VECTOR_TEST(PenaltyRows, AreFoundWhereverTheRowsLie, are_found_wherever_the_rows_lie)

/// Entries on the diagonal that are negative or missing rule cg out, wherever the rows lie.
void signs_of_the_diagonal_choose_the_method(const Case& c) {
  const auto method = [&](double in_one_row, Values values) {
    Own own(band([&](std::int64_t i) { return i == 4321 ? in_one_row : 4.0; }), context_of(c), 1,
            {c.type, false, 1, values});
    SolverOptions options;
    options.preconditioner = "jacobi";
    return Solver(*own.matrix, options).options().solver;
  };
  for (const Values values : {Values::fixed, Values::updatable}) {
    EXPECT_EQ(method(4, values), "cg");
    EXPECT_EQ(method(-4, values), "minres");
    EXPECT_EQ(method(0, values), "minres");
  }
}
SHARDMAT_VECTOR_TEST(PenaltyRows, SignsOfTheDiagonalChooseTheMethod, signs_of_the_diagonal_choose_the_method)

}  // namespace
}  // namespace shardmat
