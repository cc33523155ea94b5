// Vectors of the near null space that cycles find, and hierarchies with many of them.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/multigrid/adaptive.h"
#include "runtime/solvers/multigrid/report.h"
#include "runtime/solvers/multigrid/take_nodes.h"
#include "tests/runtime/solvers/test_system.h"

namespace shardmat {
namespace {

using namespace multigrid;
using test::System;

SolverOptions with_space(const std::string& near_null_space) {
  SolverOptions options;
  options.solver = "cg", options.preconditioner = "multigrid", options.rtol = 1e-8, options.max_iterations = 200;
  options.preconditioning.multigrid.near_null_space = near_null_space;
  return options;
}

struct Found {
  std::int64_t iterations;
  std::vector<double> history;
  std::string modes;
};

Found solve(System& system, SolverOptions options) {
  options.columns = system.b.columns();
  Solver solver(system.at.matrix, options);
  system.x.fill(0, system.stream());
  const SolveResult result = solver.solve(system.b, system.x);
  EXPECT_TRUE(result.converged());
  return {result.iterations, result.columns[0].history, solver.preconditioner().multigrid()->modes};
}

TEST(MultigridAdaptive, NeedsFewerIterationsThanConstants) {
  // Unknowns a node, vectors, and how many times fewer iterations.
  struct Case {
    const char *specification, *vectors;
    double gain;
  };
  for (const Case& c :
       {Case{"elasticity:n=14,uniform,clamp=0.08", "3 constants and 6 adaptive vectors: 16 cycles each, ", 1.8},
        Case{"elasticity:nx=4,ny=4,nz=80,uniform,clamp=0.02", "3 constants and 6 adaptive vectors", 2.5}})
    for (const std::int64_t columns : {1, 2}) {
      System system(kHost64, c.specification, columns);
      const Found constants = solve(system, with_space("constants")), adaptive = solve(system, with_space("adaptive"));
      EXPECT_EQ(adaptive.modes.find(c.vectors), 0u) << adaptive.modes;
      EXPECT_LE(c.gain * static_cast<double>(adaptive.iterations), static_cast<double>(constants.iterations))
          << c.specification << " " << adaptive.iterations;
    }
}

TEST(MultigridAdaptive, EveryRunIsTheSame) {
  System system(kHost64, "elasticity:n=10,uniform,clamp=0.1", 1);
  SolverOptions options = with_space("adaptive");
  // Another kernel may be the fastest each time, and another variant of conjugate gradients.
  options.product.plan.emplace().measure = false, options.product.plan->reproducible = true;
  EXPECT_EQ(solve(system, options).history, solve(system, options).history);
}

TEST(MultigridAdaptive, OneUnknownANodeAndFloatingBodies) {
  System poisson(kHost64, "poisson7:n=18,inclusions=1e4", 1);
  const Found scalar = solve(poisson, with_space("adaptive"));
  EXPECT_EQ(scalar.modes.find("the constant and 1 adaptive vector:"), 0u) << scalar.modes;
  EXPECT_LE(scalar.iterations, solve(poisson, with_space("constants")).iterations);
  System small(kHost64, "poisson7:n=6,uniform", 1);  // is solved exactly
  EXPECT_EQ(solve(small, with_space("adaptive")).modes, "the constant");
  System floating(kHost64, "poisson:n=14,uniform", 1);
  SolverOptions options = with_space("adaptive");
  options.null_space = NullSpace::constant;
  EXPECT_LE(solve(floating, options).iterations, 20);
}

/// Without sweeps vectors are random numbers, orthogonal to the constants: the same on any number of ranks.
TEST(MultigridAdaptive, VectorsAreOrthogonalAndStartAlike) {
  test::TestMatrix at(kHost64, "poisson7:n=9", LocalSort::none);
  const RowMap& map = *at.matrix.y_rows();
  const HostVector<std::int64_t> ids = map.ids_by_place();
  Modes known{1, 1, HostVector<double>(ids.size(), 1.0)};
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] == 5) known.value[i] = 0;
  int sweeps = 0;
  const Modes all = with_slow_vectors(known, 3, map, world(), [&](HostVector<double>& vectors) {
    EXPECT_EQ(vectors.size(), 3 * ids.size());
    ++sweeps;
  });
  EXPECT_EQ(sweeps, kAdaptiveCycles);
  ASSERT_EQ(all.count, 4);
  std::vector<double> products(16, 0.0), first(3, 0.0);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const double* const row = all.value.data() + 4 * i;
    for (std::size_t p = 0; p < 16; ++p) products[p] += row[p / 4] * row[p % 4];
    EXPECT_EQ(row[0], ids[i] == 5 ? 0 : 1);
    for (std::size_t v = 0; v < 3; ++v) {
      EXPECT_EQ(row[1 + v] == 0, ids[i] == 5);
      if (ids[i] == 700) first[v] = row[1 + v];
    }
  }
  world().all_reduce(std::span<double>(products), Reduction::sum);
  world().all_reduce(std::span<double>(first), Reduction::sum);
  for (std::size_t p = 0; p < 16; ++p) EXPECT_NEAR(products[p], p == 0 ? 728.0 : p / 4 == p % 4 ? 729.0 : 0.0, 1e-9) << p;
  EXPECT_NEAR(first[0], 0.53523017734337364, 1e-12);
  EXPECT_NEAR(first[1], 0.59112123229382163, 1e-12);
  EXPECT_NEAR(first[2], -0.00091302213850160449, 1e-12);
}

TEST(MultigridAdaptive, RefreshKeepsTheVectors) {
  System system(kHost64, "elasticity:n=10,uniform,clamp=0.1", 1);
  for (const char* const refresh : {"keep", "smooth", "anew"}) {
    SolverOptions options = with_space("adaptive");
    options.preconditioning.multigrid.refresh = refresh;
    Solver solver(system.at.matrix, options);
    const auto iterations = [&] {
      system.x.fill(0, system.stream());
      return solver.solve(system.b, system.x).iterations;
    };
    const std::int64_t before = iterations();
    solver.refresh();
    EXPECT_EQ(iterations(), before) << refresh;
    EXPECT_NE(solver.preconditioner().multigrid()->modes.find("6 adaptive vectors"), std::string::npos);
  }
}

TEST(MultigridAdaptive, RefusesUnsymmetricMatrices) {
  System system(kHost64, "convection_diffusion:n=6,peclet=10", 1);
  SolverOptions options = with_space("adaptive");
  options.solver = "auto";
  EXPECT_NE(error_of(ErrorKind::usage, [&] { Solver(system.at.matrix, options); }).find("are for symmetric matrices"),
            std::string::npos);
}

/// Any number of vectors up to 12: constants, and functions of the number of the node that rise slowly.
TEST(MultigridAdaptive, ManyGivenVectors) {
  System system(kHost64, "elasticity:n=10,uniform,clamp=0.1", 1);
  const std::int64_t usual = solve(system, with_space("constants")).iterations;
  for (int count = 7; count <= NearNullVectors::kMost; ++count) {
    auto vectors = std::make_shared<NearNullVectors>();
    vectors->count = count;
    for (const std::int64_t id : system.at.matrix.y_rows()->ids_by_place())
      for (int v = 0; v < count; ++v)
        vectors->of_own.push_back(id % 3 == v % 3 ? std::pow(static_cast<double>(id / 300) - 4.5, v / 3) : 0);
    SolverOptions options = with_space("auto");
    options.preconditioning.multigrid.near_null_vectors = vectors;
    EXPECT_LE(solve(system, options).iterations, usual + 2) << count;
  }
}

}  // namespace
}  // namespace shardmat
