// The preconditioner fsai: where it is exact, how its pattern counts, and what it refuses.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "kernels/base/error.h"
#include "tests/runtime/solvers/own_system.h"
#include "tests/runtime/solvers/test_system.h"

namespace shardmat {
namespace {

using test::csr_of;
using test::options_of;
using test::Own;
using test::System;

std::int64_t iterations_with(System& system, const HostCsr& a, const Case& c, const SolverOptions& options) {
  Solver solver(system.at.matrix, options);
  std::int64_t first = 0;
  for (const bool again : {false, true}) {
    system.x.fill(0, system.stream());
    const SolveResult result = solver.solve(system.b, system.x);
    EXPECT_TRUE(result.converged());
    for (std::int64_t j = 0; j < system.b.columns(); ++j)
      EXPECT_LE(system.residual(a, j), (c.type == ValueType::f64 ? 1.001 : 1.1) * *options.rtol *
                                           result.columns[static_cast<std::size_t>(j)].norm_of_b);
    if (!again) first = result.iterations;
    EXPECT_EQ(result.iterations, first);
    solver.refresh();
  }
  return first;
}

/// Nodes of one and of three unknowns, rows in any order, one and several columns; fewer iterations by a wider pattern.
void wider_patterns_take_fewer_iterations(const Case& c) {
  for (const char* const specification : {"elasticity:n=7,clamp=0.2", "poisson7:n=12"})
    for (const std::int64_t columns : {1, 3}) {
      System system(c, specification, columns, columns == 3 ? LocalSort::by_length : LocalSort::none);
      const HostCsr a = test::whole_matrix(specification);
      SolverOptions options = options_of("cg", "jacobi", c);
      options.columns = columns;
      const std::int64_t jacobi = iterations_with(system, a, c, options);
      options.preconditioner = "fsai";
      const std::int64_t narrow = iterations_with(system, a, c, options);
      options.preconditioning.factor.levels = 1;
      const std::int64_t wide = iterations_with(system, a, c, options);
      options.preconditioning.factor.drop_tolerance = 10;  // nothing but the blocks on the diagonal
      options.preconditioning.factor.levels = 0;
      const std::int64_t least = iterations_with(system, a, c, options);
      EXPECT_LT(4 * narrow, 3 * jacobi) << specification;
      EXPECT_LT(wide, narrow) << specification;
      EXPECT_GT(least, narrow) << specification;
    }
}
SHARDMAT_MATRIX_TEST(SparseInverse, WiderPatternsTakeFewerIterations, wider_patterns_take_fewer_iterations)

HostCsr dense(std::int64_t n, double shift) {
  return csr_of(n, [&](std::int64_t i, const auto& entry) {
    for (std::int64_t j = 0; j < n; ++j)
      entry(j, (i == j ? shift + static_cast<double>(i) : 0) + std::cos(static_cast<double>((i + 1) * (j + 1))));
  });
}

/// The pattern is that of the whole factor: M is the inverse, whatever ranks the rows are on.
TEST(SparseInverse, IsExactForAFullMatrix) {
  Own own(dense(50, 20), context_of(kHost64));
  SolverOptions options = options_of("cg", "fsai", kHost64);
  const SolveResult result = Solver(*own.matrix, options).solve(*own.b, *own.x);
  EXPECT_TRUE(result.converged());
  EXPECT_EQ(result.iterations, 1);
  EXPECT_LE(own.backward_error(), 1e-10);
}

TEST(SparseInverse, RefusesWhatItIsNotFor) {
  const auto refusal = [](ErrorKind kind, const HostCsr& a, int levels) {
    Own own(a, context_of(kHost64));
    SolverOptions options = options_of("gmres", "fsai", kHost64);
    options.preconditioning.factor.levels = levels;
    return error_of(kind, [&] { Solver(*own.matrix, options); });
  };
  EXPECT_NE(refusal(ErrorKind::input, dense(40, 0.5), 0).find("positive definite"), std::string::npos);
  EXPECT_NE(refusal(ErrorKind::usage, dense(40, 50), 2).find("factor levels of 0 or 1, not 2"), std::string::npos);
  const HostCsr askew = csr_of(30, [](std::int64_t i, const auto& entry) {
    if (i > 0) entry(i - 1, -1);
    entry(i, 4);
    if (i < 29) entry(i + 1, -2);
  });
  EXPECT_NE(refusal(ErrorKind::usage, askew, 0).find("fsai is for symmetric matrices"), std::string::npos);
}

}  // namespace
}  // namespace shardmat
