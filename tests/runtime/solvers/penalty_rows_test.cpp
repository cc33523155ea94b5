// Rows that state known values, while a solver lives.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/matrix/vectors.h"
#include "runtime/solvers/loop/random_entries.h"
#include "runtime/solvers/solver.h"
#include "runtime/source/matrix_source.h"
#include "tests/runtime/matrix/test_matrix.h"

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

}  // namespace
}  // namespace shardmat
