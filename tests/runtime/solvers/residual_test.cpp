// What solvers tell of residuals: the floor of rounding, and true residuals against a plain loop on all rows.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "runtime/solvers/loop/attainable.h"
#include "runtime/solvers/loop/random_entries.h"
#include "tests/runtime/solvers/test_system.h"

namespace shardmat {
namespace {

using test::Form;
using test::forms;
using test::options_of;
using test::System;
using test::whole_matrix;

/// ‖ |A|·|x| ‖ from the rows, and from products where they were dropped: never more, and not much less.
void finds_the_floor_of_rounding(const Case& c) {
  const char* const specification = "elasticity:n=4,seed=2";
  System system(c, specification, 2);
  Stream& stream = system.stream();
  DistributedMatrix& matrix = system.at.matrix;
  fill_random(system.x, 7, Entries::fractions, stream);
  const HostVector<double> x = system.x.gather(stream);
  const HostCsr a = whole_matrix(specification);
  std::vector<double> wanted(2, 0);
  if (world().rank() == 0)
    for (std::size_t i = 0; i < static_cast<std::size_t>(a.rows); ++i)
      for (std::size_t j = 0; j < 2; ++j) {
        double sum = 0;
        for (auto k = static_cast<std::size_t>(a.row_ptr[i]); k < static_cast<std::size_t>(a.row_ptr[i + 1]); ++k)
          sum += std::abs(a.values[k] * x[2 * static_cast<std::size_t>(a.col_idx[k]) + j]);
        wanted[j] += sum * sum;
      }
  world().all_reduce(std::span<double>(wanted), Reduction::sum);
  ProductOptions two;
  two.columns = 2;
  const auto product = matrix.product(two);
  DistributedVector before(matrix, VectorLayout::rows, c.type, 2), after(matrix, VectorLayout::rows, c.type, 2);
  product->multiply(1, system.x.view(), 0, before.view(), stream);
  const RoundingFloor floor(matrix, *product);
  const std::vector<double> norms = floor.norms(system.x, stream);
  product->multiply(1, system.x.view(), 0, after.view(), stream);
  product->wait(stream);
  EXPECT_EQ(before.own(stream), after.own(stream));
  matrix.drop_host_rows();
  const std::vector<double> bounds = floor.norms(system.x, stream);
  for (std::size_t j = 0; j < 2; ++j) {
    const double right = std::sqrt(wanted[j]);
    EXPECT_NEAR(norms[j], right, (c.type == ValueType::f64 ? 1e-12 : 1e-5) * right);
    EXPECT_LE(bounds[j], norms[j]);
    EXPECT_GE(bounds[j], norms[j] / 10);
  }
}
SHARDMAT_VECTOR_TEST(Solver, FindsTheFloorOfRounding, finds_the_floor_of_rounding)

/// What a run tells of each iteration is what runs that end there find, and telling it changes nothing.
void tells_true_residuals(const Case& c) {
  System system(c, "elasticity:n=4,clamp=0.3", 2);
  for (const Form& form : forms())
    for (const char* preconditioner : {"jacobi", "chebyshev"}) {
      SCOPED_TRACE(form.text() + " " + preconditioner);
      SolverOptions options = options_of(form, preconditioner, c);
      options.columns = 2, options.restart = 4, options.max_iterations = 6;
      options.product.plan.emplace();  // the same kernel for all solvers, so that bits can be compared
      options.product.plan->kernel = c.backend == BackendChoice::host ? "csr_host" : "csr_balanced";
      options.product.plan->same_bits = true;
      SolveControl control;
      control.true_residuals = true;
      std::vector<double> told;
      control.monitor = [&](std::int64_t, const std::vector<double>&, const std::vector<double>& norms) {
        told.push_back(norms.at(1));
      };
      system.x.fill(0, system.stream());
      const SolvedColumn all = Solver(system.at.matrix, options).solve(system.b, system.x, control).columns[1];
      ASSERT_EQ(all.true_history.size(), all.history.size());
      EXPECT_EQ(told, std::vector<double>(all.true_history.begin() + 1, all.true_history.end()));
      for (const std::int64_t iterations : {2, 5}) {
        options.max_iterations = iterations;
        system.x.fill(0, system.stream());
        const SolvedColumn some = Solver(system.at.matrix, options).solve(system.b, system.x).columns[1];
        const auto at = static_cast<std::size_t>(some.iterations);
        EXPECT_EQ(some.history, std::vector<double>(all.history.begin(), all.history.begin() + some.iterations + 1));
        EXPECT_NEAR(all.true_history[at], some.true_residual, (c.type == ValueType::f64 ? 1e-12 : 1e-4) * some.norm_of_b);
      }
    }
}
SHARDMAT_VECTOR_TEST(Solver, TellsTrueResiduals, tells_true_residuals)

/// The true residual is that of the stored values and of x, whatever the type: a product of f32 errs by some per cent
/// here. Without rows on the host it says how it was summed.
void sums_true_residuals_in_f64(const Case& c) {
  System system(c, "elasticity:n=5,clamp=0.3", 2);
  HostCsr a = whole_matrix("elasticity:n=5,clamp=0.3");
  for (double& value : a.values) value = rounded(c.type, value);
  for (const char* method : {"cg", "gmres"}) {
    SCOPED_TRACE(method);
    SolverOptions options = options_of(method, "jacobi", c);
    options.rtol = 1e-12, options.columns = 2;
    system.x.fill(0, system.stream());
    const SolveResult result = Solver(system.at.matrix, options).solve(system.b, system.x);
    EXPECT_EQ(result.why_f32, "");
    for (std::int64_t j = 0; j < 2; ++j) {
      const double residual = system.residual(a, j);
      EXPECT_NEAR(result.columns[static_cast<std::size_t>(j)].true_residual, residual,
                  (c.type == ValueType::f32 ? 1e-6 : 1e-2) * residual);
    }
  }
  Solver solver(system.at.matrix, options_of("cg", "jacobi", c));
  system.at.matrix.drop_host_rows();
  DistributedVector b(system.at.matrix, VectorLayout::rows, c.type), x(system.at.matrix, VectorLayout::rows, c.type);
  b.fill(1, system.stream());
  x.fill(0, system.stream());
  const SolveResult result = solver.solve(b, x);
  EXPECT_TRUE(result.converged());
  EXPECT_EQ(result.why_f32, c.type == ValueType::f32 ? "the rows are no longer in host memory" : "");
}
SHARDMAT_VECTOR_TEST(Solver, SumsTrueResidualsInF64, sums_true_residuals_in_f64)

}  // namespace
}  // namespace shardmat
