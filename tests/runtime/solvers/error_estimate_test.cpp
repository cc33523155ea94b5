// What solves tell of their errors, least-squares solutions of inconsistent systems, and restarts after breakdowns.
#include "runtime/solvers/loop/error_estimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/runtime/solvers/own_system.h"

namespace shardmat {
namespace {

using test::csr_of;
using test::Own;

/// b_i = 1 + sin(i), which has a part in every direction.
void set_b(Own& own) {
  HostVector<double> values;
  for (const std::int64_t id : own.b->ids()) values.push_back(1 + std::sin(static_cast<double>(id)));
  to_device(own.b->view().data, values, ValueType::f64, own.context.stream());
  own.x->fill(0, own.context.stream());
}

/// All rows of x on every rank.
HostVector<double> all_of(DistributedVector& x, Context& context) {
  HostVector<double> values = x.gather(context.stream());
  values.resize(static_cast<std::size_t>(x.rows() * x.columns()));
  context.communicator().broadcast(std::span<double>(values), 0);
  return values;
}

/// Eigenvalues from 1/100 to 1 in equal steps; with `indefinite` every second one is negative.
HostCsr diagonal(bool indefinite) {
  return csr_of(80, [&](std::int64_t i, const auto& entry) {
    const double value = 0.01 + 0.99 * static_cast<double>(i) / 79;
    entry(i, indefinite && i % 2 == 1 ? -value : value);
  });
}

TEST(ErrorEstimate, OfADiagonalMatrixWithAKnownCondition) {
  for (const auto& [method, indefinite] : {std::pair("cg", false), std::pair("minres", false), std::pair("minres", true),
                                           std::pair("gmres", true), std::pair("fgmres", false)}) {
    SCOPED_TRACE(std::string(method) + (indefinite ? " indefinite" : ""));
    const HostCsr a = diagonal(indefinite);
    Own own(a, context_of(kHost64));
    set_b(own);
    SolverOptions options;
    options.solver = method, options.preconditioner = "none", options.rtol = 1e-7, options.restart = 100;
    const SolvedColumn column = Solver(*own.matrix, options).solve(*own.b, *own.x).columns[0];
    EXPECT_EQ(column.reason, SolveReason::converged_rtol);
    ASSERT_TRUE(column.spectrum);
    EXPECT_NEAR(column.spectrum->largest, 1, 1e-3);
    EXPECT_NEAR(column.spectrum->condition(), 100, 2);
    // The bound holds, and is of some use; the exact answer is b / a.
    const HostVector<double> x = all_of(*own.x, own.context), b = all_of(*own.b, own.context);
    double error = 0, size = 0, residual = 0, of_b = 0, of_x = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = b[i] / a.values[i], weight = std::string(method) == "cg" ? a.values[i] : 1;
      error += weight * (x[i] - exact) * (x[i] - exact), size += weight * exact * exact;
      residual += std::pow(b[i] - a.values[i] * x[i], 2), of_b += b[i] * b[i], of_x += x[i] * x[i];
    }
    ASSERT_TRUE(column.error_bound);
    EXPECT_LE(std::sqrt(error / size), 1.02 * *column.error_bound);
    EXPECT_LE(*column.error_bound, 100 * 1.1e-7);
    EXPECT_GT(error, 0);
    EXPECT_NEAR(column.backward_error, std::sqrt(residual) / (std::sqrt(of_x) + std::sqrt(of_b)),
                0.02 * column.backward_error);
  }
}

/// Neighbours in a row of 400 unknowns, of stiffness 1 to 3.
HostCsr chain() {
  const auto stiffness = [](std::int64_t i) { return 2 + std::sin(static_cast<double>(3 * i)); };
  return csr_of(400, [&](std::int64_t i, const auto& entry) {
    if (i > 0) entry(i - 1, -stiffness(i));
    entry(i, stiffness(i) + stiffness(i + 1));
    if (i < 399) entry(i + 1, -stiffness(i + 1));
  });
}

/// Sets b = scale · A·x of an x that is known, and x to 0. Returns that x, of all rows.
std::vector<double> set_b_of_known_x(Own& own, const HostCsr& a, double scale) {
  std::vector<double> x(static_cast<std::size_t>(a.rows));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = scale * (1 + std::cos(0.7 * static_cast<double>(i)));
  HostVector<double> b;
  for (const std::int64_t id : own.b->ids()) {
    const auto i = static_cast<std::size_t>(id);
    b.push_back(0);
    for (auto k = static_cast<std::size_t>(a.row_ptr[i]); k < static_cast<std::size_t>(a.row_ptr[i + 1]); ++k)
      b.back() += a.values[k] * x[static_cast<std::size_t>(a.col_idx[k])];
  }
  to_device(own.b->view().data, b, ValueType::f64, own.context.stream());
  own.x->fill(0, own.context.stream());
  return x;
}

/// Twice the energy of x.
double energy_of(const HostCsr& a, const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    for (auto k = static_cast<std::size_t>(a.row_ptr[i]); k < static_cast<std::size_t>(a.row_ptr[i + 1]); ++k)
      sum += x[i] * a.values[k] * x[static_cast<std::size_t>(a.col_idx[k])];
  return sum;
}

/// M takes passes of its own, so that the last residual has no M·r: its norm comes from the residual before. The error lies
/// between the bound and what the condition number leaves of the bound, solve after solve, and also where x is known almost.
TEST(ErrorEstimate, OfConjugateGradientsWithASeparatePreconditioner) {
  const HostCsr a = chain();
  Own own(a, context_of(kHost64));
  for (const char* preconditioner : {"block_jacobi", "chebyshev"})
    for (const CgVariant variant : {CgVariant::classic, CgVariant::single_reduction, CgVariant::flexible})
      for (const ResidualNorm norm : {ResidualNorm::unpreconditioned, ResidualNorm::preconditioned, ResidualNorm::natural}) {
        SolverOptions options;
        options.solver = "cg", options.preconditioner = preconditioner, options.variant = variant;
        options.residual_norm = norm, options.rtol = 1e-7, options.preconditioning.node_block_size = 2;
        Solver solver(*own.matrix, options);
        for (const int time : {0, 1, 2}) {
          SCOPED_TRACE(std::string(preconditioner) + ", " + std::string(name(variant)) + ", " + std::string(name(norm)) +
                       ", solve " + std::to_string(time));
          const std::vector<double> exact = set_b_of_known_x(own, a, time == 1 ? 1e-40 : 1);
          const SolvedColumn column = solver.solve(*own.b, *own.x).columns[0];
          ASSERT_EQ(column.reason, SolveReason::converged_rtol);
          const HostVector<double> x = all_of(*own.x, own.context);
          std::vector<double> error(exact.size());
          for (std::size_t i = 0; i < exact.size(); ++i) error[i] = x[i] - exact[i];
          const double found = std::sqrt(energy_of(a, error) / energy_of(a, exact));
          ASSERT_TRUE(column.error_bound && column.spectrum);
          EXPECT_LE(found, 1.02 * *column.error_bound);
          EXPECT_LE(*column.error_bound, 1.05 * std::sqrt(column.spectrum->condition()) * found);
        }
      }
}

/// Squares of the last residuals are below what numbers hold with all digits.
TEST(ErrorEstimate, IsNotGivenWhereRoundingIsAllThatIsLeft) {
  const HostCsr a = chain();
  Own own(a, context_of(kHost64));
  for (const CgVariant variant : {CgVariant::classic, CgVariant::single_reduction}) {
    SolverOptions options;
    options.solver = "cg", options.preconditioner = "block_jacobi", options.variant = variant, options.rtol = 1e-13;
    options.preconditioning.node_block_size = 2;
    Solver solver(*own.matrix, options);
    for (const double scale : {1.0, 1e-120, 1e-130, 1.0}) {
      set_b_of_known_x(own, a, scale);
      const SolveResult result = solver.solve(*own.b, *own.x);
      ASSERT_TRUE(result.converged()) << scale << ": " << name(result.columns[0].reason);
      EXPECT_EQ(result.columns[0].error_bound.has_value(), scale > 1e-129) << name(variant) << " " << scale;
    }
  }
}

TEST(ErrorEstimate, OfOtherMethodsIsNotGiven) {
  Own own(diagonal(false), context_of(kHost64));
  for (const char* method : {"bicgstab", "chebyshev"}) {
    set_b(own);
    SolverOptions options;
    options.solver = method, options.preconditioner = "none";
    const SolvedColumn column = Solver(*own.matrix, options).solve(*own.b, *own.x).columns[0];
    EXPECT_TRUE(converged(column.reason)) << name(column.reason);
    EXPECT_FALSE(column.spectrum);
    EXPECT_FALSE(column.error_bound);
    EXPECT_GT(column.backward_error, 0);
    EXPECT_LE(column.backward_error, 1e-8);
  }
}

TEST(ErrorEstimate, OfSingularValues) {
  // Of the upper triangle of ones of 4 rows; numpy.linalg.svd.
  UpperTriangle ones{4, 4, {1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0, 0, 1, 0, 0, 0}};
  const Spectrum found = singular_values(ones);
  EXPECT_NEAR(found.largest, 2.87938524, 1e-5);
  EXPECT_NEAR(found.least, 0.53208889, 1e-5);
  ones.entries[4] = 0;  // on the diagonal
  EXPECT_EQ(singular_values(ones).least, 0);
}

/// A norm from below that two products find.
TEST(ErrorEstimate, OfTheNormOfAMatrix) {
  Own own(diagonal(true), context_of(kHost64));
  const auto product = own.matrix->product();
  MatrixNorm norm(*product);
  const double found = norm(own.context.stream());
  EXPECT_LE(found, 1 + 1e-12);
  EXPECT_GE(found, 1 / 1.5);
}

/// Grids of m × m nodes with Neumann conditions only: constants are mapped to 0.
HostCsr neumann(std::int64_t m) {
  return csr_of(m * m, [&](std::int64_t i, const auto& entry) {
    const std::int64_t x = i % m, y = i / m;
    if (y > 0) entry(i - m, -1);
    if (x > 0) entry(i - 1, -1);
    entry(i, (x > 0) + (x + 1 < m) + (y > 0) + (y + 1 < m));
    if (x + 1 < m) entry(i + 1, -1);
    if (y + 1 < m) entry(i + m, -1);
  });
}

/// Indefinite, and singular: an unknown that nothing couples.
HostCsr with_a_free_unknown() {
  return csr_of(300, [](std::int64_t i, const auto& entry) {
    if (i == 150) return entry(i, 0);
    if (i != 151) entry(i - 1, 1);
    entry(i, i % 3 == 0 ? -4.0 : 5.0);
    if (i != 149) entry(i + 1, 1);
  });
}

void finds_least_squares(const HostCsr& a, const char* preconditioner, const std::vector<double>& null_vector) {
  SCOPED_TRACE(preconditioner);
  Own own(a, context_of(kHost64));
  set_b(own);
  SolverOptions options;
  options.solver = "minres", options.preconditioner = preconditioner, options.null_space = NullSpace::none;
  const SolveResult result = Solver(*own.matrix, options).solve(*own.b, *own.x);
  const SolvedColumn& column = result.columns[0];
  EXPECT_EQ(column.reason, SolveReason::least_squares) << name(column.reason);
  EXPECT_LE(column.normal_residual, 1e-5);
  EXPECT_FALSE(column.error_bound);
  EXPECT_FALSE(result.converged());  // A·x = b was asked for
  // The residual of least squares is the part of b along the null vector, in the norm of M: M·r is a multiple of it.
  const HostVector<double> x = all_of(*own.x, own.context), b = all_of(*own.b, own.context);
  double with_b = 0, of_null = 0, found = 0;
  const bool scaled = std::string(preconditioner) == "jacobi";
  std::vector<double> r(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    r[i] = b[i];
    double diagonal = 1;
    for (auto k = static_cast<std::size_t>(a.row_ptr[i]); k < static_cast<std::size_t>(a.row_ptr[i + 1]); ++k) {
      r[i] -= a.values[k] * x[static_cast<std::size_t>(a.col_idx[k])];
      if (scaled && a.col_idx[k] == static_cast<std::int64_t>(i) && a.values[k] != 0) diagonal = std::abs(a.values[k]);
    }
    with_b += null_vector[i] * b[i], of_null += null_vector[i] * null_vector[i] * diagonal;
    found += r[i] * r[i] / diagonal;
  }
  EXPECT_NEAR(std::sqrt(found), std::abs(with_b) / std::sqrt(of_null), 1e-6 * std::sqrt(found));
  EXPECT_NEAR(column.true_residual, std::sqrt([&] {
                double sum = 0;
                for (const double one : r) sum += one * one;
                return sum;
              }()),
              1e-9 * column.norm_of_b);
}

TEST(Minres, FindsLeastSquaresOfInconsistentSystems) {
  for (const char* preconditioner : {"none", "jacobi"}) {
    finds_least_squares(neumann(20), preconditioner, std::vector<double>(400, 1));
    std::vector<double> one(300, 0);
    one[150] = 1;
    if (std::string(preconditioner) == "none") finds_least_squares(with_a_free_unknown(), preconditioner, one);
  }
}

/// A consistent system whose smallest eigenvalue is 1e-9 of the largest one is none of least squares.
TEST(Minres, TakesNoIllConditionedSystemForAnInconsistentOne) {
  Own own(csr_of(200, [](std::int64_t i,
                         const auto& entry) { entry(i, i == 0 ? 1e-9 : 0.5 + 0.5 * static_cast<double>(i) / 199); }),
          context_of(kHost64));
  set_b(own);
  SolverOptions options;
  options.solver = "minres", options.preconditioner = "none";
  const SolvedColumn column = Solver(*own.matrix, options).solve(*own.b, *own.x).columns[0];
  EXPECT_EQ(column.reason, SolveReason::converged_rtol) << name(column.reason);
  const HostVector<double> x = all_of(*own.x, own.context);
  EXPECT_NEAR(x[0], 1e9, 1);
}

/// Pairs of unknowns that change places map the first residual to what is orthogonal to it: the first shadow divides by 0.
TEST(Bicgstab, BeginsAnewAfterABreakdown) {
  constexpr std::int64_t kRows = 40;
  Own own(csr_of(kRows, [](std::int64_t i, const auto& entry) { entry(i ^ 1, 1 + 0.5 * static_cast<double>(i) / kRows); }),
          context_of(kHost64), 2);
  HostVector<double> values;  // the first column breaks down, the second is an ordinary one
  for (const std::int64_t id : own.b->ids()) {
    values.push_back(id % 2 == 0 ? 1 : 0);
    values.push_back(1 + std::sin(static_cast<double>(id)));
  }
  to_device(own.b->view().data, values, ValueType::f64, own.context.stream());
  SolverOptions options;
  options.solver = "bicgstab", options.preconditioner = "none", options.columns = 2;
  const SolveResult result = Solver(*own.matrix, options).solve(*own.b, *own.x);
  EXPECT_TRUE(result.converged()) << name(result.columns[0].reason) << " " << name(result.columns[1].reason);
  EXPECT_GE(result.columns[0].breakdowns, 1);
  EXPECT_LE(result.columns[0].breakdowns, 10);
  const HostVector<double> x = all_of(*own.x, own.context), b = all_of(*own.b, own.context);
  for (std::size_t i = 0; i < kRows; ++i)
    for (std::size_t j = 0; j < 2; ++j) EXPECT_NEAR(own.whole.values[i] * x[2 * (i ^ 1) + j], b[2 * i + j], 1e-7);
}

/// A matrix that is skew-symmetric has no stabilising step: ω is 0 each time, and the restarts end.
TEST(Bicgstab, EndsAfterTooManyBreakdowns) {
  Own own(csr_of(40, [](std::int64_t i, const auto& entry) { entry(i - 1, -1), entry(i + 1, 1); }), context_of(kHost64));
  set_b(own);
  SolverOptions options;
  options.solver = "bicgstab", options.preconditioner = "none";
  const SolvedColumn column = Solver(*own.matrix, options).solve(*own.b, *own.x).columns[0];
  EXPECT_FALSE(converged(column.reason));
  EXPECT_EQ(column.reason, SolveReason::diverged_breakdown) << name(column.reason);
  EXPECT_EQ(column.breakdowns, 10);
}

}  // namespace
}  // namespace shardmat
