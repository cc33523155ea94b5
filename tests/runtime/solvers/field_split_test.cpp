// Saddle points by fields.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "runtime/solvers/direct/factors.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/solver_settings.h"
#include "tests/runtime/solvers/own_system.h"
#include "tests/runtime/solvers/test_system.h"

namespace shardmat {
namespace {

using test::csr_of;
using test::Own;
using test::System;

/// A flow in a closed square of n × n cells, by finite differences on a staggered grid (Harlow and Welch). A cell has three
/// unknowns: u on its right face, v on its upper one, and p. Faces in the walls are known: rows of the identity.
/// `compressible`: of p, on the diagonal; `wind`: an upwind convection; `permeable`: no viscosity, a resistance that varies.
struct Flow {
  std::int64_t n;
  double compressible = 0, wind = 0;
  bool permeable = false;

  HostCsr matrix() const {
    return csr_of(3 * n * n, [this](std::int64_t row, const auto& entry) {
      const std::int64_t cell = row / 3, i = cell % n, j = cell / n;
      if (row % 3 == 2) {  // −div
        const auto face = [&](std::int64_t a, std::int64_t b, int c, double value) {
          if (is_inside(a, b, c)) entry(number(a, b, c), value);
        };
        face(i, j - 1, 1, 1), face(i - 1, j, 0, 1), face(i, j, 0, -1), face(i, j, 1, -1);
        entry(row, -compressible);
        return;
      }
      const auto c = static_cast<int>(row % 3);
      if (!is_inside(i, j, c)) return entry(row, 1);
      const auto next = [&](std::int64_t a, std::int64_t b, double value) {
        if (a >= 0 && b >= 0 && a < n && b < n && is_inside(a, b, c)) entry(number(a, b, c), value);
      };
      entry(row, permeable ? 1 + 0.5 * static_cast<double>((7 * i + 3 * j + c) % 11) : 4 + wind);
      if (!permeable) next(i, j - 1, -1), next(i - 1, j, -1 - wind), next(i + 1, j, -1), next(i, j + 1, -1);
      entry(number(i, j, 2), -1);
      entry(c == 0 ? number(i + 1, j, 2) : number(i, j + 1, 2), 1);
    });
  }

 private:
  std::int64_t number(std::int64_t i, std::int64_t j, int c) const { return 3 * (j * n + i) + c; }
  bool is_inside(std::int64_t i, std::int64_t j, int c) const {
    return i >= 0 && j >= 0 && (c == 0 ? i + 1 < n : j + 1 < n);
  }
};

SolverOptions split(const std::string& solver, std::int64_t columns = 1) {
  SolverOptions options;
  options.solver = solver, options.preconditioner = "field_split", options.columns = columns;
  options.rtol = 1e-9;
  return options;
}

/// Solves, and checks x. Returns the iterations.
std::int64_t solve(const Flow& flow, const SolverOptions& options, std::string* described = nullptr) {
  Own own(flow.matrix(), context_of(kHost64), options.columns);
  Solver solver(*own.matrix, options);
  const SolveResult result = solver.solve(*own.b, *own.x);
  EXPECT_TRUE(result.converged()) << name(result.columns[0].reason);
  EXPECT_LE(own.backward_error(), 1e-6);
  if (described != nullptr) *described = solver.preconditioner().describe();
  return result.iterations;
}

TEST(FieldSplit, TakesAsManyIterationsOnFinerMeshes) {
  for (const auto& [solver, most] :
       {std::pair("gmres", 45), std::pair("fgmres", 45), std::pair("auto", 45), std::pair("minres", 80)}) {
    const std::int64_t coarse = solve({24, 0.01}, split(solver)), fine = solve({48, 0.01}, split(solver));
    EXPECT_LE(fine, most) << solver;
    EXPECT_LE(fine, coarse * 5 / 4) << solver;
  }
}

/// A field is the rows without a diagonal to speak of, or what the digits say.
TEST(FieldSplit, FindsTheFields) {
  std::string found, named;
  SolverOptions options = split("gmres");
  const std::int64_t iterations = solve({12, 1e-5}, options, &found);
  options.preconditioning.fields = "001";
  EXPECT_EQ(solve({12, 1e-5}, options, &named), iterations);
  EXPECT_EQ(found, named);
  EXPECT_NE(found.find("288 unknowns"), std::string::npos) << found;
  EXPECT_NE(found.find("the diagonal of the Schur complement on 144 unknowns"), std::string::npos) << found;
}

/// G maps the constant to 0, so the diagonal of S tells nothing of it.
TEST(FieldSplit, TakesTheConstantApart) {
  std::string described;
  for (const char* const solver : {"gmres", "minres"}) {
    EXPECT_LE(solve({20, 1e-7}, split(solver), &described), 80) << solver;
    EXPECT_NE(described.find("their constant apart"), std::string::npos) << described;
  }
}

/// Velocities are known all around, and p is known up to a constant: b, which is not consistent, loses its part there.
TEST(FieldSplit, RemovesTheConstantOfAClosedFlow) {
  for (const Flow& flow : {Flow{20}, Flow{20, 0, 0.5}, Flow{20, 0, 0, true}})
    for (const char* const solver : {"auto", "gmres", "fgmres", "minres"}) {
      if (flow.wind > 0 && std::string(solver) == "minres") continue;
      SCOPED_TRACE(std::string(solver) + (flow.wind > 0 ? " with a wind" : flow.permeable ? " of Darcy" : ""));
      Own own(flow.matrix(), context_of(kHost64), 2);
      SolverOptions options = split(solver, 2);
      if (options.solver == "auto") options.preconditioner = "auto";
      Solver closed(*own.matrix, options);
      const SolveResult result = closed.solve(*own.b, *own.x);
      EXPECT_TRUE(result.converged()) << name(result.columns[0].reason) << " after " << result.iterations;
      EXPECT_LE(result.iterations, 120);
      EXPECT_EQ(result.null_vectors, 1);
      EXPECT_EQ(result.null_space, "the constant of the second field, as a pressure without a reference");
      Context& context = own.context;
      const HostVector<double> b = own.b->gather(context.stream());
      HostVector<double> x = own.x->gather(context.stream());
      if (context.communicator().rank() > 0) continue;
      for (std::size_t j = 0; j < 2; ++j) {
        const SolvedColumn& column = result.columns[j];
        double mean = 0, pressures = 0, squares = 0;
        for (std::int64_t i = 0; i < own.whole.rows; ++i) {
          const auto row = static_cast<std::size_t>(i);
          double r = b[2 * row + j];
          for (std::int64_t k = own.whole.row_ptr[row]; k < own.whole.row_ptr[row + 1]; ++k)
            r -= own.whole.values[static_cast<std::size_t>(k)] *
                 x[2 * static_cast<std::size_t>(own.whole.col_idx[static_cast<std::size_t>(k)]) + j];
          squares += r * r;
          if (i % 3 == 2) mean += b[2 * row + j], pressures += x[2 * row + j];
        }
        const double removed = std::abs(mean) / static_cast<double>(flow.n);  // its norm in n² rows
        EXPECT_NEAR(column.removed_from_b, removed, 1e-9 * removed);
        EXPECT_NEAR(std::sqrt(squares), removed, 1e-6 * column.norm_of_b);
        EXPECT_NEAR(pressures, 0, 1e-8 * std::abs(pressures) + 1e-6);
      }
    }
}

/// Factors find a pivot of 0, and then the same constant.
TEST(FieldSplit, FactorsKnowTheConstantOfAClosedFlow) {
  if (!direct::can_factorise(world())) GTEST_SKIP() << "no library for these ranks";
  for (const double wind : {0.0, 0.5}) {
    Own own(Flow{12, 0, wind}.matrix(), context_of(kHost64));
    SolverOptions options;
    options.solver = "direct";
    Solver solver(*own.matrix, options);
    const SolveResult result = solver.solve(*own.b, *own.x);
    EXPECT_TRUE(result.converged()) << name(result.columns[0].reason);
    EXPECT_EQ(result.null_space, "the constant of the second field, as a pressure without a reference");
    EXPECT_GT(result.columns[0].removed_from_b, 0.01);
  }
}

TEST(FieldSplit, SolvesForSeveralColumns) {
  EXPECT_LE(solve({20, 0.01}, split("gmres", 3)), 45);
  EXPECT_LE(solve({20, 0.01}, split("minres", 2)), 80);
}

TEST(FieldSplit, TakesConvection) {
  EXPECT_LE(solve({24, 0.01, 0.5}, split("fgmres")), 60);
  std::string described;
  SolverOptions options = split("fgmres");
  const std::int64_t simple = solve({24, 1e-7, 3}, options);
  options.preconditioning.schur = "commutator";
  EXPECT_LT(solve({24, 1e-7, 3}, options, &described), simple);
  EXPECT_NE(described.find("commutators for the Schur complement"), std::string::npos) << described;
  options.columns = 3;
  EXPECT_LT(solve({24, 1e-7, 3}, options), simple);
}

/// The first block is diagonal: then S is D·F⁻¹·G itself, and multigrid is good for it.
TEST(FieldSplit, TakesMultigridForDarcy) {
  std::string described;
  EXPECT_LE(solve({40, 1e-4, 0, true}, split("gmres"), &described), 30);
  EXPECT_NE(described.find("multigrid of the Schur complement on 1,600 unknowns"), std::string::npos) << described;
  SolverOptions simple = split("gmres");
  simple.preconditioning.schur = "diagonal";
  EXPECT_GT(solve({40, 1e-4, 0, true}, simple, &described), 60);
}

TEST(FieldSplit, TakesNewValues) {
  Own own(Flow{16, 0.01}.matrix(), context_of(kHost64));
  Solver solver(*own.matrix, split("gmres"));
  EXPECT_TRUE(solver.solve(*own.b, *own.x).converged());
  HostCsr stiffer = own.whole;
  for (double& value : stiffer.values) value *= value > 1 || value < -1 ? 20 : 1;
  own.update(std::move(stiffer));
  solver.refresh();
  own.x->fill(0, own.context.stream());
  const SolveResult result = solver.solve(*own.b, *own.x);
  EXPECT_TRUE(result.converged());
  EXPECT_LE(own.backward_error(), 1e-7);
  own.x->fill(0, own.context.stream());
  EXPECT_EQ(Solver(*own.matrix, split("gmres")).solve(*own.b, *own.x).iterations, result.iterations);
}

/// Nobody names a solver or a preconditioner.
TEST(FieldSplit, IsChosenForSaddlePoints) {
  Own own(Flow{24, 0.01}.matrix(), context_of(kHost64));
  Solver solver(*own.matrix, SolverOptions());
  EXPECT_EQ(solver.options().preconditioner, "field_split") << solver.preconditioner_why();
  EXPECT_EQ(solver.options().solver, "gmres");
  EXPECT_NE(solver.preconditioner().describe().find("triangular"), std::string::npos) << solver.preconditioner().describe();
  EXPECT_TRUE(solver.solve(*own.b, *own.x).converged());
  EXPECT_LE(own.backward_error(), 1e-6);
}

TEST(FieldSplit, RefusesWhatIsNoSaddlePoint) {
  System definite(kHost64, "poisson27:n=4", 1);
  std::string text = error_of(ErrorKind::usage, [&] { Solver(definite.at.matrix, split("gmres")); });
  EXPECT_NE(text.find("there is one field only"), std::string::npos) << text;
  SolverOptions options = split("gmres");
  options.preconditioning.fields = "00001";
  text = error_of(ErrorKind::usage, [&] { Solver(definite.at.matrix, options); });
  EXPECT_NE(text.find("nodes of 5 unknowns, but 64 rows"), std::string::npos) << text;
  HostCsr loose = Flow{6, 0}.matrix();
  for (std::int64_t k = loose.row_ptr[2]; k < loose.row_ptr[3]; ++k) loose.values[static_cast<std::size_t>(k)] = 0;
  options.preconditioning.fields = "001";
  Own own(loose, context_of(kHost64));
  text = error_of(ErrorKind::input, [&] { Solver(*own.matrix, options); });
  EXPECT_NE(text.find("row 0 of the second field is coupled with no unknown of the first"), std::string::npos) << text;
  EXPECT_THROW(find_solver_setting("fields").set(options, "012"), Error);
  Own flow(Flow{6, 0.1}.matrix(), context_of(kHost64));
  options = split("minres"), options.preconditioning.schur = "commutator";
  text = error_of(ErrorKind::usage, [&] { Solver(*flow.matrix, options); });
  EXPECT_NE(text.find("commutators make no symmetric preconditioner"), std::string::npos) << text;
}

}  // namespace
}  // namespace shardmat
