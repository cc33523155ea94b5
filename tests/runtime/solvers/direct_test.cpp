// Factors as a preconditioner, and the method that refines with them.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <memory>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "runtime/solvers/direct/factors.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "tests/runtime/solvers/own_system.h"
#include "tests/runtime/solvers/test_system.h"

namespace shardmat {
namespace {

using test::csr_of;
using test::kPenalty;
using test::Own;
using test::System;
using test::whole_matrix;
using test::x_at;

SolverOptions direct_options(std::int64_t columns = 1) {
  SolverOptions options;
  options.solver = "direct", options.columns = columns;
  return options;
}

/// −u'' − shift·u.
HostCsr shifted_laplacian(std::int64_t n, double shift) {
  return csr_of(n, [&](std::int64_t i, const auto& entry) { entry(i - 1, -1), entry(i, 2 - shift), entry(i + 1, -1); });
}

void solves_as_a_plain_loop_says(const Case& c) {
  if (!direct::can_factorise(world())) GTEST_SKIP() << "no library for these ranks";
  for (const auto& [specification, columns] : {std::pair("elasticity:n=5,clamp=0.3", 1), std::pair("poisson27:n=6", 3),
                                               std::pair("convection_diffusion:n=8,peclet=50,wind=rotating", 2)}) {
    SCOPED_TRACE(specification);
    const HostCsr a = whole_matrix(specification);
    System system(c, specification, columns, columns == 3 ? LocalSort::by_length : LocalSort::none);
    Solver solver(system.at.matrix, direct_options(columns));
    EXPECT_EQ(solver.options().preconditioner, "direct");
    for (int turn = 0; turn < 2; ++turn) {  // the factors stay
      system.x.fill(turn, system.stream());
      const SolveResult result = solver.solve(system.b, system.x);
      EXPECT_LE(result.iterations, 2);
      for (std::int64_t j = 0; j < columns; ++j) {
        const SolvedColumn& column = result.columns[static_cast<std::size_t>(j)];
        EXPECT_EQ(column.reason, SolveReason::converged_rtol) << name(column.reason);
        EXPECT_LE(system.residual(a, j), (c.type == ValueType::f64 ? 1e-8 : 1.1e-5) * column.norm_of_b);
      }
    }
    const DirectReport& report = *solver.preconditioner().direct();
    EXPECT_EQ(report.kind, specification[0] == 'c' ? "L·U" : "L·D·Lᵀ without pivoting");
    EXPECT_EQ(report.note, "");
    EXPECT_GT(report.nonzeros, a.rows);
    for (const std::int64_t count : world().all_gather(report.nonzeros)) EXPECT_EQ(count, report.nonzeros);
  }
}
SHARDMAT_MATRIX_TEST(Direct, SolvesAsAPlainLoopSays, solves_as_a_plain_loop_says)

/// As the preconditioner of other methods, and alone.
TEST(Direct, IsAPreconditioner) {
  if (!direct::can_factorise(world())) GTEST_SKIP() << "no library for these ranks";
  System system(kHost64, "elasticity:n=5,clamp=0.3", 2);
  for (const char* const method : {"cg", "minres", "fgmres"}) {
    SolverOptions options = direct_options(2);
    options.solver = method, options.preconditioner = "direct";
    Solver solver(system.at.matrix, options);
    system.x.fill(0, system.stream());
    const SolveResult result = solver.solve(system.b, system.x);
    EXPECT_TRUE(result.converged()) << method;
    EXPECT_LE(result.iterations, 2) << method;
    system.x.fill(1, system.stream());
    solver.precondition(system.b, system.x);
    EXPECT_LE(system.residual(whole_matrix("elasticity:n=5,clamp=0.3"), 1), 1e-8);
  }
}

TEST(Direct, CountsNegativePivots) {
  if (!direct::can_factorise(world())) GTEST_SKIP() << "no library for these ranks";
  constexpr std::int64_t kRows = 200;
  constexpr double kShift = 0.3;
  std::int64_t below = 0;
  for (std::int64_t k = 1; k <= kRows; ++k)
    below += 2 - 2 * std::cos(static_cast<double>(k) * std::numbers::pi / (kRows + 1)) < kShift ? 1 : 0;
  ASSERT_GT(below, 10);
  Own indefinite(shifted_laplacian(kRows, kShift), context_of(kHost64), 3);
  Solver solver(*indefinite.matrix, direct_options(3));
  EXPECT_TRUE(solver.solve(*indefinite.b, *indefinite.x).converged());
  EXPECT_LE(indefinite.backward_error(), 1e-12);
  const DirectReport& report = *solver.preconditioner().direct();
  if (report.library[0] == 'M') {
    EXPECT_EQ(report.negative, below);
    EXPECT_EQ(report.kind, "L·D·Lᵀ");
    EXPECT_NE(report.note, "");  // the diagonal is positive
  }
  SolverOptions options = direct_options(3);
  options.solver = "minres", options.preconditioner = "direct";
  const std::string text = error_of(ErrorKind::usage, [&] { Solver(*indefinite.matrix, options); });
  EXPECT_NE(text.find("take the solver direct"), std::string::npos) << text;
}

/// [K Bᵀ; B 0] with zeros on the diagonal, K a Laplacian and B differences.
TEST(Direct, SolvesSaddlePoints) {
  if (!direct::can_factorise(world())) GTEST_SKIP() << "no library for these ranks";
  constexpr std::int64_t kVelocities = 120, kPressures = 40;
  const HostCsr saddle = csr_of(kVelocities + kPressures, [&](std::int64_t i, const auto& entry) {
    if (i < kVelocities) {
      if (i > 0) entry(i - 1, -1);
      entry(i, 2);
      if (i + 1 < kVelocities) entry(i + 1, -1);
      const std::int64_t p = i / 3;  // differences within three velocities
      if (i % 3 != 1) entry(kVelocities + p, i % 3 == 0 ? -1 : 1.5);
    } else {
      const std::int64_t first = 3 * (i - kVelocities);
      entry(first, -1), entry(first + 2, 1.5);
    }
  });
  Own stokes(saddle, context_of(kHost64), 2);
  Solver solver(*stokes.matrix, direct_options(2));
  EXPECT_TRUE(solver.solve(*stokes.b, *stokes.x).converged());
  EXPECT_LE(stokes.backward_error(), 1e-12);
  const DirectReport& report = *solver.preconditioner().direct();
  if (report.library[0] == 'M') {
    EXPECT_EQ(report.negative, kPressures);
  }
}

/// A beam's fourth derivative has a condition of some 1e12, as a thin shell's matrix.
TEST(Direct, SolvesIllConditionedSystems) {
  if (!direct::can_factorise(world())) GTEST_SKIP() << "no library for these ranks";
  const HostCsr beam = csr_of(1500, [](std::int64_t i, const auto& entry) {
    entry(i - 2, 1), entry(i - 1, -4), entry(i, 6), entry(i + 1, -4), entry(i + 2, 1);
  });
  Own own(beam, context_of(kHost64));
  Solver solver(*own.matrix, direct_options());
  const SolveResult result = solver.solve(*own.b, *own.x);
  EXPECT_TRUE(result.converged()) << name(result.columns[0].reason);
  EXPECT_LE(result.iterations, 10);
  EXPECT_LE(own.backward_error(), 1e-13);
}

TEST(Direct, TakesNewValues) {
  if (!direct::can_factorise(world())) GTEST_SKIP() << "no library for these ranks";
  Own own(shifted_laplacian(300, 0), context_of(kHost64), 2);
  Solver solver(*own.matrix, direct_options(2));
  EXPECT_TRUE(solver.solve(*own.b, *own.x).converged());
  const double ordered = solver.preconditioner().direct()->analysis_seconds;
  const auto take = [&](const HostCsr& a) {
    own.update(a);
    solver.refresh();
    own.x->fill(0, own.context.stream());
    EXPECT_TRUE(solver.solve(*own.b, *own.x).converged());
    EXPECT_LE(own.backward_error(), 1e-12);
  };
  HostCsr stiffer = own.whole;
  for (double& value : stiffer.values) value *= value > 0 ? 3 : 1.25;
  take(stiffer);
  EXPECT_EQ(solver.preconditioner().direct()->analysis_seconds, ordered);  // kept
  take(shifted_laplacian(300, 0.7));                                       // indefinite
  HostCsr upwind = own.whole;
  for (std::size_t k = 1; k < upwind.values.size(); k += 3) upwind.values[k] *= 1.05;
  take(upwind);
  EXPECT_EQ(solver.preconditioner().direct()->kind, "L·U");
  take(stiffer);
}

/// A wind around a ring, which maps constants to 0; `growth`: of its rows.
HostCsr cyclic_convection(double growth) {
  return csr_of(64, [growth](std::int64_t i, const auto& entry) {
    const double speed = 1 + growth * static_cast<double>(i);
    if (i > 0) entry(i - 1, -speed);
    entry(i, speed);
    if (i == 0) entry(63, -speed);
  });
}

TEST(Direct, RefusesSingularMatrices) {
  if (!direct::can_factorise(world())) GTEST_SKIP() << "no library for these ranks";
  const auto refusal = [](const HostCsr& a) {
    Own own(a, context_of(kHost64));
    return error_of(ErrorKind::input, [&] { Solver(*own.matrix, direct_options()); });
  };
  const HostCsr row_of_zeros = csr_of(50, [](std::int64_t i, const auto& entry) {
    entry(i - 1, i == 20 ? 0 : -1), entry(i, i == 20 ? 0 : 3), entry(i + 1, i == 20 ? 0 : -1.5);
  });
  EXPECT_NE(refusal(row_of_zeros).find("singular"), std::string::npos) << refusal(row_of_zeros);
  const HostCsr uneven = cyclic_convection(0.1);  // its transpose does not map constants to 0
  EXPECT_NE(refusal(uneven).find("Hold some unknowns"), std::string::npos) << refusal(uneven);
}

/// Constants and motions that nothing holds are found and removed; nothing else is.
TEST(Direct, RemovesNullSpaces) {
  if (!direct::can_factorise(world())) GTEST_SKIP() << "no library for these ranks";
  Own even(cyclic_convection(0), context_of(kHost64));
  Solver of_even(*even.matrix, direct_options());
  const SolveResult result_of_even = of_even.solve(*even.b, *even.x);
  EXPECT_TRUE(result_of_even.converged());
  EXPECT_EQ(result_of_even.null_vectors, 1);
  for (const auto& [specification, count] : {std::pair("poisson:n=9,uniform", 1), std::pair("elasticity:n=5", 6)}) {
    System system(kHost64, specification, 2);
    SolverOptions options = direct_options(2);
    Solver solver(system.at.matrix, options);
    const SolveResult result = solver.solve(system.b, system.x);
    EXPECT_EQ(result.null_vectors, count) << specification;
    const HostCsr a = whole_matrix(specification);
    for (std::int64_t j = 0; j < 2; ++j) {
      const SolvedColumn& column = result.columns[static_cast<std::size_t>(j)];
      EXPECT_TRUE(converged(column.reason)) << specification;
      EXPECT_NEAR(system.residual(a, j), column.removed_from_b, 1e-7 * column.norm_of_b);
    }
    solver.refresh();
    options.null_space = NullSpace::none;
    EXPECT_NE(error_of(ErrorKind::input, [&] { Solver(system.at.matrix, options); }).find("singular"), std::string::npos);
  }
}

/// Rounding the values to f32 hides that a matrix is singular; a slender beam, which is not, stays as it is.
TEST(Direct, RemovesNullSpacesInF32) {
  if (!direct::can_factorise(world())) GTEST_SKIP() << "no library for these ranks";
  for (const auto& [specification, count] :
       {std::pair("elasticity:n=5", 6), std::pair("elasticity:n=5,uniform", 6), std::pair("poisson:n=9", 1),
        std::pair("poisson:n=9,uniform", 1), std::pair("elasticity:nx=40,ny=3,nz=3,uniform,clamp=0.01", 0)}) {
    System system(kHost32, specification, 1);
    Solver solver(system.at.matrix, direct_options());
    const SolveResult result = solver.solve(system.b, system.x);
    EXPECT_EQ(result.null_vectors, count) << specification;
    EXPECT_TRUE(converged(result.columns[0].reason)) << specification << ": " << name(result.columns[0].reason);
    solver.refresh();
  }
}

TEST(Direct, TakesPenaltyRows) {
  if (!direct::can_factorise(world())) GTEST_SKIP() << "no library for these ranks";
  HostCsr a = shifted_laplacian(90, 0);
  for (std::int64_t i = 0; i < a.rows; i += 29)
    for (std::int64_t k = a.row_ptr[static_cast<std::size_t>(i)]; k < a.row_ptr[static_cast<std::size_t>(i) + 1]; ++k)
      if (a.col_idx[static_cast<std::size_t>(k)] == i) a.values[static_cast<std::size_t>(k)] = kPenalty;
  Own own(a, context_of(kHost64));
  Solver solver(*own.matrix, direct_options());
  const SolveResult result = solver.solve(*own.b, *own.x);
  EXPECT_EQ(result.penalty_rows, 4);
  EXPECT_TRUE(result.converged());
  EXPECT_LE(own.backward_error(), 1e-12);
}

TEST(Direct, RefusesOtherPreconditioners) {
  System system(kHost64, "poisson27:n=4", 1);
  SolverOptions options = direct_options();
  options.preconditioner = "jacobi";
  const std::string text = error_of(ErrorKind::usage, [&] { Solver(system.at.matrix, options); });
  EXPECT_NE(text.find("the solver direct takes the preconditioner direct only"), std::string::npos) << text;
  options = {};
  options.preconditioner = "direct";
  if (direct::can_factorise(world())) {
    EXPECT_EQ(Solver(system.at.matrix, options).options().solver, "direct");
  }
}

/// Each rank destroys them when it likes; what all have destroyed is freed when the next one is made.
TEST(Direct, FactorsAreDestroyedInAnyOrder) {
  if (!direct::can_factorise(world())) GTEST_SKIP() << "no library for these ranks";
  System system(kHost64, "poisson27:n=5", 1);
  for (int turn = 0; turn < 3; ++turn) {
    auto first = std::make_unique<Solver>(system.at.matrix, direct_options());
    auto second = std::make_unique<Solver>(system.at.matrix, direct_options());
    if (world().rank() % 2 == 0) first.reset();
    second.reset();
    Solver third(system.at.matrix, direct_options());
    first.reset();
    EXPECT_TRUE(third.solve(system.b, system.x).converged());
  }
}

/// On one rank, whose memory MUMPS's forecast does not fit: all ranks say so.
TEST(Direct, ChecksMemoryBeforeItFactorises) {
  if (!direct::can_factorise(world())) GTEST_SKIP() << "no library for these ranks";
  System system(kHost64, "poisson27:n=22", 1);
  const bool last = world().rank() == world().size() - 1;
  std::int64_t used = 0;
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmSize:") status >> used;
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  const rlimit little{static_cast<rlim_t>(used * 1024 + (12 << 20)), before.rlim_max};
  if (last) {
    ASSERT_EQ(setrlimit(RLIMIT_AS, &little), 0);
  }
  const std::string text = error_of(ErrorKind::resources, [&] { Solver(system.at.matrix, direct_options()); });
  setrlimit(RLIMIT_AS, &before);
  EXPECT_NE(text.find("memory"), std::string::npos) << text;
  EXPECT_TRUE(Solver(system.at.matrix, direct_options()).solve(system.b, system.x).converged());
}

/// A program without MPI, and so without MUMPS.
TEST(Direct, EigenServesProgramsWithoutMpi) {
  if (direct::make_eigen() == nullptr) GTEST_SKIP() << "no Eigen";
  Communicator alone = Communicator::alone();
  Context context(alone, BackendChoice::host);
  for (const auto& [specification, kind] : {std::pair("elasticity:n=5,clamp=0.3", "L·D·Lᵀ without pivoting"),
                                            std::pair("convection_diffusion:n=7,peclet=9", "L·U")}) {
    Own own(whole_matrix(specification), context, 3);
    Solver solver(*own.matrix, direct_options(3));
    EXPECT_TRUE(solver.solve(*own.b, *own.x).converged());
    EXPECT_LE(own.backward_error(), 1e-12);
    const DirectReport& report = *solver.preconditioner().direct();
    EXPECT_EQ(report.library.substr(0, 6), "Eigen ");
    EXPECT_EQ(report.kind, kind);
    solver.refresh();
    EXPECT_TRUE(solver.solve(*own.b, *own.x).converged());
  }
  Own indefinite(shifted_laplacian(200, 0.3), context);
  Solver solver(*indefinite.matrix, direct_options());
  EXPECT_TRUE(solver.solve(*indefinite.b, *indefinite.x).converged());
  EXPECT_NE(solver.preconditioner().direct()->note, "");
  const auto spring = [](std::int64_t i) { return i < 0 || i >= 63 ? 0 : 0.1 * static_cast<double>(1 + i % 7); };
  Own singular(csr_of(64,
                      [&](std::int64_t i, const auto& entry) {
                        entry(i - 1, -spring(i - 1)), entry(i, spring(i - 1) + spring(i)), entry(i + 1, -spring(i));
                      }),
               context);
  const std::string text = [&] {
    SolverOptions options = direct_options();
    options.null_space = NullSpace::none;
    return error_of(ErrorKind::input, [&] { Solver(*singular.matrix, options); });
  }();
  EXPECT_NE(text.find("singular"), std::string::npos) << text;
}

}  // namespace
}  // namespace shardmat
