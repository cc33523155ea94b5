// Solves with multigrid: what its iterations may be.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "partition/source/row_source.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/multigrid/report.h"
#include "runtime/solvers/multigrid/smoother.h"
#include "runtime/source/matrix_source.h"
#include "tests/runtime/solvers/own_system.h"
#include "tests/runtime/solvers/test_system.h"

namespace shardmat {
namespace {

using namespace multigrid;
using test::coordinates_of;
using test::System;

/// check(case) on each backend.
#define SHARDMAT_MULTIGRID_TEST(name, check)            \
  TEST(Multigrid, name) { check(kHost64); }             \
  TEST(GpuMultigrid, name) { on_gpus(check, kCuda64); } \
  TEST(MultiGpuMultigrid, name) { on_gpus(check, kCuda64); }

std::int64_t iterations_of(System& system, SolverOptions options) {
  options.solver = "cg", options.preconditioner = "multigrid", options.rtol = 1e-8, options.max_iterations = 100;
  options.columns = system.b.columns();
  Solver solver(system.at.matrix, options);
  system.x.fill(0, system.stream());
  const SolveResult result = solver.solve(system.b, system.x);
  for (const SolvedColumn& column : result.columns) EXPECT_EQ(column.reason, SolveReason::converged_rtol);
  return result.iterations;
}

void needs_few_iterations(const Case& c) {
  const std::string elasticity = "elasticity:n=16,uniform,clamp=0.05";
  for (const std::int64_t columns : {1, 3}) {
    System system(c, elasticity, columns);
    SolverOptions options;
    options.preconditioning.multigrid.coordinates =
        coordinates_of(*open_matrix(elasticity, world()).rows, system.at.matrix, 3);
    const std::int64_t rigid = iterations_of(system, options);
    EXPECT_LE(rigid, 14);
    options.preconditioning.multigrid.inner = ValueType::f64;
    EXPECT_NEAR(static_cast<double>(iterations_of(system, options)), static_cast<double>(rigid), 1);
    options.preconditioning.multigrid.near_null_space = "constants";
    EXPECT_GT(iterations_of(system, options), rigid);
  }
  for (const char* const poisson : {"poisson7:n=20,uniform", "poisson27:n=20,uniform"}) {
    System system(c, poisson, 1);
    EXPECT_LE(iterations_of(system, {}), 14) << poisson;
  }
  // Strong couplings alone make it too dense; aggregates across weak ones would take 120 iterations.
  System layers(c, "poisson7:n=30,inclusions=1e4,stretch=1x1x3", 1);
  EXPECT_LE(iterations_of(layers, {}), 35);
}
SHARDMAT_MULTIGRID_TEST(NeedsFewIterations, needs_few_iterations)

/// All smoothers and cycles; K with a method that takes it.
void smoothers_and_cycles(const Case& c) {
  System system(c, "poisson7:n=20,uniform", 2);
  std::map<std::string, std::int64_t> taken;
  for (const SmootherEntry& smoother : smoothers())
    for (const char* const cycle : {"V", "W", "K"}) {
      SolverOptions options;
      options.preconditioner = "multigrid", options.rtol = 1e-8, options.columns = 2;
      options.preconditioning.multigrid.smoother = smoother.name, options.preconditioning.multigrid.cycle = cycle;
      options.preconditioning.multigrid.coarse_size = 20;
      Solver solver(system.at.matrix, options);
      EXPECT_EQ(solver.options().solver, cycle[0] == 'K' ? "fgmres" : "cg");
      EXPECT_EQ(solver.preconditioner().varies(), cycle[0] == 'K');
      EXPECT_EQ(solver.preconditioner().multigrid()->cycle, cycle);
      EXPECT_EQ(solver.preconditioner().multigrid()->smoother, smoother.name);
      system.x.fill(0, system.stream());
      const SolveResult result = solver.solve(system.b, system.x);
      EXPECT_TRUE(result.converged()) << smoother.name << cycle;
      EXPECT_LE(result.iterations, 20) << smoother.name << cycle;
      taken[std::string(smoother.name) + cycle] = result.iterations;
    }
  for (const SmootherEntry& smoother : smoothers())
    for (const char* const cycle : {"W", "K"})
      EXPECT_LE(taken[std::string(smoother.name) + cycle], taken[std::string(smoother.name) + "V"]);
}
SHARDMAT_MULTIGRID_TEST(SmoothersAndCycles, smoothers_and_cycles)

/// A vector of several sizes, so that an operator that is not linear shows.
void solves_unsymmetric_systems(const Case& c) {
  for (const char* const specification :
       {"convection_diffusion:nx=60,ny=50,nz=1,peclet=100,wind=rotating", "convection_diffusion:n=14,peclet=10"})
    for (const auto& [method, cycle] : {std::pair{"auto", "K"}, std::pair{"gmres", "W"}, std::pair{"bicgstab", "W"}}) {
      System system(c, specification, 2);
      SolverOptions options;
      options.solver = method, options.preconditioner = "multigrid", options.rtol = 1e-8, options.columns = 2;
      options.preconditioning.multigrid.coarse_size = 100;
      Solver solver(system.at.matrix, options);
      const MultigridReport& report = *solver.preconditioner().multigrid();
      EXPECT_EQ(report.cycle, cycle);
      EXPECT_EQ(report.smoother, "l1_jacobi");
      EXPECT_FALSE(report.smoothed);
      EXPECT_EQ(solver.options().solver, method == std::string("auto") ? "fgmres" : method);
      system.x.fill(0, system.stream());
      const SolveResult result = solver.solve(system.b, system.x);
      EXPECT_TRUE(result.converged()) << specification << method;
      EXPECT_LE(result.iterations, 60) << specification << method;
      solver.refresh();
      system.x.fill(0, system.stream());
      EXPECT_EQ(solver.solve(system.b, system.x).iterations, result.iterations);
    }
}
SHARDMAT_MULTIGRID_TEST(SolvesUnsymmetricSystems, solves_unsymmetric_systems)

/// Bilinear elements of a diffusion 1,000 times as strong in a direction askew to the mesh. Steps of full length overshoot
/// here: the cycle is then not positive definite.
HostCsr anisotropic(std::int64_t n) {
  constexpr double kAlong = 0.75025, kAcross = 0.25075, kMixed = 0.432580;  // of 30 degrees
  return test::csr_of(n * n, [&](std::int64_t i, const auto& entry) {
    const std::int64_t x = i % n, y = i / n;
    for (std::int64_t dy = -1; dy <= 1; ++dy)
      for (std::int64_t dx = -1; dx <= 1; ++dx) {
        if (x + dx < 0 || x + dx >= n || y + dy < 0 || y + dy >= n) continue;
        const double sx = dx == 0 ? 2 : -1, sy = dy == 0 ? 2 : -1, mx = dx == 0 ? 4 : 1, my = dy == 0 ? 4 : 1;
        entry(i + dy * n + dx, kAlong * sx * my / 6 + kAcross * sy * mx / 6 - kMixed * static_cast<double>(dx * dy) / 2);
      }
  });
}

void factors_smooth_what_polynomials_do_not(const Case& c) {
  test::Own own(anisotropic(70), context_of(c));
  std::map<std::string, std::int64_t> taken;
  for (const char* const smoother : {"chebyshev", "ic", "ilu"}) {
    SolverOptions options;
    options.solver = "cg", options.preconditioner = "multigrid", options.rtol = 1e-8;
    options.preconditioning.multigrid.smoother = smoother, options.preconditioning.multigrid.coarse_size = 100;
    Solver solver(*own.matrix, options);
    for (const bool again : {false, true}) {
      own.x->fill(0, own.context.stream());
      const SolveResult result = solver.solve(*own.b, *own.x);
      EXPECT_TRUE(result.converged()) << smoother << ' ' << again;
      EXPECT_LE(own.backward_error(), 1e-7);
      taken.try_emplace(smoother, result.iterations);
      EXPECT_EQ(result.iterations, taken[smoother]);
      solver.refresh();
    }
  }
  if (c.backend == BackendChoice::host) {
    EXPECT_LE(3 * taken["ic"], 2 * taken["chebyshev"]);
  } else {  // their order is another one
    EXPECT_LT(taken["ic"], taken["chebyshev"]);
  }
  EXPECT_NEAR(static_cast<double>(taken["ilu"]), static_cast<double>(taken["ic"]), 1);
}
TEST(Multigrid, IncompleteFactorsSmoothWhatPolynomialsDoNot) { factors_smooth_what_polynomials_do_not(kHost64); }
TEST(GpuMultigrid, IncompleteFactorsSmoothWhatPolynomialsDoNot) { on_gpus(factors_smooth_what_polynomials_do_not, kCuda64); }
TEST(MultiGpuMultigrid, IncompleteFactorsSmoothWhatPolynomialsDoNot) {
  on_gpus(factors_smooth_what_polynomials_do_not, kCuda64);
}

void factors_smooth_blocks(const Case& c) {
  for (const char* const specification : {"elasticity:n=12,clamp=0.1", "elasticity:n=12,clamp=0.1,inclusions=1e4"}) {
    System system(c, specification, 2);
    std::map<std::string, std::int64_t> taken;
    for (const char* const smoother : {"chebyshev", "ic"}) {
      SolverOptions options;
      options.preconditioning.multigrid.smoother = smoother, options.preconditioning.multigrid.coarse_size = 60;
      NearNullVectors many{8, {}};  // blocks of 8 on the coarse levels: factors take those of 4
      const HostVector<std::int64_t> ids = system.b.ids();
      for (const std::int64_t id : ids)
        for (int k = 0; k < many.count; ++k)
          many.of_own.push_back(k < 3 ? (id % 3 == k ? 1 : 0) : std::sin(static_cast<double>((id / 3 + 1) * (k + 1))));
      options.preconditioning.multigrid.near_null_vectors = std::make_shared<NearNullVectors>(std::move(many));
      taken[smoother] = iterations_of(system, options);
    }
    EXPECT_LE(taken["ic"], taken["chebyshev"]) << specification;
  }
}
TEST(Multigrid, IncompleteFactorsSmoothBlocks) { factors_smooth_blocks(kHost64); }
TEST(GpuMultigrid, IncompleteFactorsSmoothBlocks) { on_gpus(factors_smooth_blocks, kCuda64); }

void factors_smooth_convection(const Case& c) {
  System system(c, "convection_diffusion:nx=60,ny=50,nz=1,peclet=100,wind=rotating", 2);
  std::map<std::string, std::int64_t> taken;
  for (const char* const smoother : {"l1_jacobi", "ilu"}) {
    SolverOptions options;
    options.preconditioner = "multigrid", options.rtol = 1e-8, options.columns = 2;
    options.preconditioning.multigrid.coarse_size = 100, options.preconditioning.multigrid.smoother = smoother;
    system.x.fill(0, system.stream());
    const SolveResult result = Solver(system.at.matrix, options).solve(system.b, system.x);
    EXPECT_TRUE(result.converged()) << smoother;
    taken[smoother] = result.iterations;
  }
  EXPECT_LT(3 * taken["ilu"], 2 * taken["l1_jacobi"]);
}
TEST(Multigrid, IncompleteFactorsSmoothConvection) { factors_smooth_convection(kHost64); }
TEST(GpuMultigrid, IncompleteFactorsSmoothConvection) { on_gpus(factors_smooth_convection, kCuda64); }

/// Of V nothing changes; a variant that is named and does not fit is refused.
void the_cycle_k_takes_the_flexible_variant_of_cg(const Case& c) {
  System system(c, "elasticity:n=9,clamp=0.1,nu=0.45", 2);
  SolverOptions options;
  options.solver = "cg", options.preconditioner = "multigrid", options.rtol = 1e-8, options.columns = 2;
  options.preconditioning.multigrid.coarse_size = 60;
  std::map<std::string, std::int64_t> taken;
  for (const char* const cycle : {"V", "K"})
    for (const CgVariant variant : {CgVariant::automatic, CgVariant::flexible}) {
      options.preconditioning.multigrid.cycle = cycle, options.variant = variant;
      Solver solver(system.at.matrix, options);
      EXPECT_EQ(solver.options().solver, "cg");
      const bool flexible = cycle[0] == 'K' || variant == CgVariant::flexible;
      EXPECT_EQ(solver.variant()->variant == CgVariant::flexible, flexible);
      EXPECT_EQ(solver.variant()->why == "the cycle K is no linear map", cycle[0] == 'K' && variant == CgVariant::automatic);
      system.x.fill(0, system.stream());
      const SolveResult result = solver.solve(system.b, system.x);
      EXPECT_TRUE(result.converged()) << cycle;
      taken[cycle] = result.iterations;
    }
  EXPECT_LE(taken["K"], taken["V"] + 1);  // of so small a system K takes hardly fewer
  for (const CgVariant variant : {CgVariant::classic, CgVariant::single_reduction}) {
    options.variant = variant;
    const std::string message = error_of(ErrorKind::usage, [&] { Solver(system.at.matrix, options); });
    EXPECT_NE(message.find(fmt::format("the variant {} of cg needs a preconditioner that stays the same", name(variant))),
              std::string::npos);
    EXPECT_NE(message.find("take the variant flexible"), std::string::npos);
  }
}
SHARDMAT_MULTIGRID_TEST(TheCycleKTakesTheFlexibleVariantOfCg, the_cycle_k_takes_the_flexible_variant_of_cg)

TEST(Multigrid, RefusesCyclesAndSmoothersThatDoNotFit) {
  const auto refused = [&](const char* specification, const char* method, const char* cycle, const char* smoother) {
    System system(kHost64, specification, 1);
    SolverOptions options;
    options.solver = method, options.preconditioner = "multigrid";
    options.preconditioning.multigrid.cycle = cycle, options.preconditioning.multigrid.smoother = smoother;
    return error_of(ErrorKind::usage, [&] { Solver(system.at.matrix, options); });
  };
  const char *const symmetric = "poisson7:n=6", *const wind = "convection_diffusion:n=6,peclet=10";
  EXPECT_NE(refused(symmetric, "minres", "K", "auto").find("minres needs a preconditioner that stays the same"),
            std::string::npos);
  EXPECT_NE(refused(symmetric, "minres", "K", "auto").find("take fgmres, or cg"), std::string::npos);
  EXPECT_NE(refused(wind, "auto", "auto", "chebyshev").find("chebyshev is for symmetric matrices"), std::string::npos);
  EXPECT_NE(refused(wind, "auto", "auto", "ic").find("ic is for symmetric matrices"), std::string::npos);
  EXPECT_NE(refused(wind, "auto", "X", "auto").find("cycle"), std::string::npos);
  EXPECT_NE(refused(wind, "auto", "V", "l1").find("l1_jacobi"), std::string::npos);
}

/// f32 holds neither 1e-60 nor 1e60.
void any_scale_of_b(const Case& c) {
  System system(c, "poisson7:n=10,uniform", 1);
  const std::int64_t usual = iterations_of(system, {});
  HostVector<double> values = system.b.own(system.stream());
  for (const double scale : {1e-60, 1e60}) {
    HostVector<double> scaled = values;
    for (double& value : scaled) value *= scale;
    system.b.set_own(scaled, system.stream());
    EXPECT_EQ(iterations_of(system, {}), usual);
  }
}
SHARDMAT_MULTIGRID_TEST(AnyScaleOfB, any_scale_of_b)

void solves_floating_systems(const Case& c) {
  LoadOptions load = test::options_for(c, LocalSort::none);
  Context& context = context_of(c);
  DistributedMatrix matrix(open_matrix("poisson:n=9,uniform", world()), context, load);
  DistributedVector b(matrix, VectorLayout::rows, ValueType::f64), x(matrix, VectorLayout::rows, ValueType::f64);
  HostVector<double> values;
  for (const std::int64_t id : matrix.y_rows()->ids_by_place()) values.push_back(test::x_at(id, 0));
  b.set_own(values, context.stream());
  SolverOptions options;
  options.preconditioner = "multigrid", options.null_space = NullSpace::constant, options.max_iterations = 40;
  options.preconditioning.multigrid.coarse_size = 30;
  Solver solver(matrix, options);
  EXPECT_EQ(solver.options().preconditioning.projector, nullptr);  // copies of options may outlive the context
  EXPECT_EQ(solver.solve(b, x).columns[0].reason, SolveReason::converged_rtol);
}
SHARDMAT_MULTIGRID_TEST(SolvesFloatingSystems, solves_floating_systems)

/// Stiffnesses that change by a fifth from element to element, and by 1e5 altogether.
void refresh_takes_new_values(const Case& c) {
  LoadOptions load = test::options_for(c, LocalSort::none);
  load.values = Values::updatable;
  Context& context = context_of(c);
  for (const char* const refresh : {"keep", "smooth", "anew"}) {
    DistributedMatrix matrix(open_matrix("poisson7:n=20,uniform", world()), context, load);
    DistributedVector b(matrix, VectorLayout::rows, ValueType::f64), x(matrix, VectorLayout::rows, ValueType::f64);
    HostVector<double> of_b;
    for (const std::int64_t id : matrix.y_rows()->ids_by_place()) of_b.push_back(test::x_at(id, 0));
    b.set_own(of_b, context.stream());
    SolverOptions options;
    options.preconditioner = "multigrid", options.rtol = 1e-8;
    options.preconditioning.multigrid.refresh = refresh;
    Solver solver(matrix, options);
    const std::int64_t before = solver.solve(b, x).iterations;
    const auto source = open_matrix("poisson7:n=20,uniform", world()).rows;
    std::vector<double> values;
    for (const std::int64_t id : matrix.y_rows()->ids_by_place()) {
      const auto row = source->read_rows(id, id + 1);
      for (std::size_t k = 0; k < row.values.size(); ++k) {
        const std::int64_t other = row.col_idx[k];
        values.push_back(1e5 * row.values[k] * (other == id ? 1.2 : 1 + 0.2 * test::x_at(id + other, 0)));
      }
    }
    matrix.update_values(values, context.stream());
    solver.refresh();
    x.fill(0, context.stream());
    const SolveResult after = solver.solve(b, x);
    EXPECT_TRUE(after.converged()) << refresh;
    EXPECT_LE(after.iterations, before + 3) << refresh;
    Solver anew(matrix, options);
    x.fill(0, context.stream());
    const std::int64_t fresh = anew.solve(b, x).iterations;
    if (std::string(refresh) == "anew") {
      EXPECT_EQ(after.iterations, fresh);
    }
    EXPECT_LE(static_cast<double>(after.iterations), 1.15 * static_cast<double>(fresh) + 1) << refresh;
  }
}
SHARDMAT_MULTIGRID_TEST(RefreshTakesNewValues, refresh_takes_new_values)

/// The rigid-body modes of nodes, as a program gives them.
std::shared_ptr<NearNullVectors> rigid_vectors(const NodeCoordinates& nodes) {
  auto found = std::make_shared<NearNullVectors>();
  found->count = 6;
  for (std::size_t i = 0; i < nodes.of_own.size(); i += 3) {
    const double x = nodes.of_own[i], y = nodes.of_own[i + 1], z = nodes.of_own[i + 2];
    for (const double value : {1.0, 0.0, 0.0, -y, 0.0, z, 0.0, 1.0, 0.0, x, -z, 0.0, 0.0, 0.0, 1.0, 0.0, y, -x})
      found->of_own.push_back(value);
  }
  return found;
}

void takes_given_vectors(const Case& c) {
  const std::string elasticity = "elasticity:n=12,uniform,clamp=0.05";
  System system(c, elasticity, 1);
  system.at.matrix.know_nodes(nullptr);
  const auto coordinates = coordinates_of(*open_matrix(elasticity, world()).rows, system.at.matrix, 3);
  const std::int64_t without = iterations_of(system, {});
  SolverOptions options;
  options.preconditioning.multigrid.coordinates = coordinates;
  const std::int64_t rigid = iterations_of(system, options);
  EXPECT_GT(without, rigid);
  options.preconditioning.multigrid.coordinates = nullptr;
  auto vectors = rigid_vectors(*coordinates);
  options.preconditioning.multigrid.near_null_vectors = vectors;
  EXPECT_NEAR(static_cast<double>(iterations_of(system, options)), static_cast<double>(rigid), 1);
  for (std::size_t i = 0; i < vectors->of_own.size(); ++i) vectors->of_own[i] *= i % 6 == 4 ? 1e200 : 1e-200;
  EXPECT_NEAR(static_cast<double>(iterations_of(system, options)), static_cast<double>(rigid), 1);
}
SHARDMAT_MULTIGRID_TEST(TakesGivenVectors, takes_given_vectors)

TEST(Multigrid, RefusesVectorsThatCannotBe) {
  System system(kHost64, "elasticity:n=4,clamp=0.3", 1);
  const std::int64_t unknowns = std::ssize(system.b.own(system.stream()));
  const bool last = world().rank() + 1 == world().size();
  const auto refused = [&](ErrorKind kind, const NearNullVectors& vectors, const std::string& name = "auto") {
    SolverOptions options;
    options.preconditioner = "multigrid", options.preconditioning.multigrid.near_null_space = name;
    options.preconditioning.multigrid.near_null_vectors = std::make_shared<NearNullVectors>(vectors);
    return error_of(kind, [&] { Solver(system.at.matrix, options); });
  };
  NearNullVectors vectors{2, HostVector<double>(at(2 * unknowns), 1.0)};
  EXPECT_NE(refused(ErrorKind::usage, vectors, "constants").find("near_null_space is constants"), std::string::npos);
  for (std::int64_t i = 0; i < unknowns; ++i) vectors.of_own[at(2 * i + 1)] = 0;
  EXPECT_NE(refused(ErrorKind::input, vectors).find("vector 2 of 2 is 0 in all unknowns"), std::string::npos);
  if (last) vectors.of_own[0] = std::nan("");
  EXPECT_NE(refused(ErrorKind::input, vectors).find("vectors hold NaN"), std::string::npos);
  if (last) vectors.of_own.pop_back();
  EXPECT_NE(refused(ErrorKind::usage, vectors).find("2 near-null vectors come with"), std::string::npos);
  vectors.count = 13;
  EXPECT_NE(refused(ErrorKind::usage, vectors).find("give 1 to 12"), std::string::npos);
  if (world().size() > 1) {
    vectors.count = last ? 2 : 3;
    EXPECT_NE(refused(ErrorKind::usage, vectors).find("some ranks give 2 near-null vectors, others 3"), std::string::npos);
  }
}

void tells_its_levels(const Case& c) {
  System system(c, "poisson7:n=12,uniform", 1);
  SolverOptions options;
  options.preconditioner = "multigrid", options.preconditioning.multigrid.coarse_size = 20;
  const Solver solver(system.at.matrix, options);
  const MultigridReport* const report = solver.preconditioner().multigrid();
  ASSERT_NE(report, nullptr);
  ASSERT_GE(report->levels.size(), 3u);
  EXPECT_EQ(report->levels[0].unknowns, 1728);
  EXPECT_EQ(report->levels[0].nonzeros, 7 * 1728 - 6 * 144);
  double all = 0;
  for (std::size_t l = 0; l < report->levels.size(); ++l) {
    const LevelReport& level = report->levels[l];
    all += static_cast<double>(level.nonzeros);
    EXPECT_TRUE(l == 0 || level.unknowns < report->levels[l - 1].unknowns);
    const bool last = l + 1 == report->levels.size();
    EXPECT_TRUE(last ? level.radius == 0 : level.radius > 1 && level.radius < 6) << level.radius;
    EXPECT_EQ(level.exact, last);
  }
  EXPECT_DOUBLE_EQ(report->operator_complexity, all / static_cast<double>(report->levels[0].nonzeros));
  EXPECT_GT(report->bytes, 8 * report->levels[0].nonzeros);
  EXPECT_EQ(Solver(system.at.matrix, {}).preconditioner().multigrid(), nullptr);
}
SHARDMAT_MULTIGRID_TEST(TellsItsLevels, tells_its_levels)

TEST(Multigrid, RefusesWhatDoesNotFit) {
  System system(kHost64, "elasticity:n=4,clamp=0.3", 1);
  system.at.matrix.know_nodes(nullptr);
  const auto refused = [&](const MultigridOptions& multigrid) {
    SolverOptions options;
    options.preconditioner = "multigrid", options.preconditioning.multigrid = multigrid;
    return error_of(ErrorKind::usage, [&] { Solver(system.at.matrix, options); });
  };
  MultigridOptions rigid;
  rigid.near_null_space = "rigid";
  EXPECT_NE(refused(rigid).find("need the coordinates"), std::string::npos);
  MultigridOptions wrong;
  auto coordinates = std::make_shared<NodeCoordinates>();
  coordinates->of_own.assign(3 * 1000, 0.5);
  wrong.coordinates = coordinates;
  EXPECT_NE(refused(wrong).find("coordinates of 1000 nodes"), std::string::npos);
  coordinates->dimensions = 4;
  EXPECT_NE(refused(wrong).find("12 numbers, not 4"), std::string::npos);
  coordinates->dimensions = 3;
  SolverOptions jacobi;
  jacobi.preconditioner = "jacobi", jacobi.preconditioning.multigrid = wrong;
  const std::string text = error_of(ErrorKind::usage, [&] { Solver(system.at.matrix, jacobi); });
  EXPECT_NE(text.find("coordinates are of no use with the preconditioner jacobi"), std::string::npos) << text;
  const auto nodes = coordinates_of(*open_matrix("elasticity:n=4,clamp=0.3", world()).rows, system.at.matrix, 3);
  auto not_finite = std::make_shared<NodeCoordinates>(*nodes);
  if (world().rank() + 1 == world().size()) not_finite->of_own.back() = std::nan("");
  SolverOptions options;
  options.preconditioner = "multigrid", options.preconditioning.multigrid.coordinates = not_finite;
  const std::string found = error_of(ErrorKind::input, [&] { Solver(system.at.matrix, options); });
  EXPECT_NE(found.find("the coordinates hold NaN"), std::string::npos) << found;
  if (world().size() == 1) return;
  if (world().rank() == 0) wrong.coordinates.reset();
  EXPECT_NE(refused(wrong).find("on all ranks or on none"), std::string::npos);
}

}  // namespace
}  // namespace shardmat
