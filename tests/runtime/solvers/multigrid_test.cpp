// Multigrid against dense linear algebra, and what its iterations may be.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/base/parallel.h"
#include "partition/source/row_source.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/multigrid/aggregate.h"
#include "runtime/solvers/multigrid/asymmetry.h"
#include "runtime/solvers/multigrid/coarse.h"
#include "runtime/solvers/multigrid/galerkin.h"
#include "runtime/solvers/multigrid/near_null_space.h"
#include "runtime/solvers/multigrid/operator.h"
#include "runtime/solvers/multigrid/pairwise.h"
#include "runtime/solvers/multigrid/prolong.h"
#include "runtime/solvers/multigrid/report.h"
#include "runtime/solvers/multigrid/restriction.h"
#include "runtime/solvers/multigrid/smoother.h"
#include "runtime/solvers/multigrid/take_nodes.h"
#include "runtime/source/matrix_source.h"
#include "tests/runtime/solvers/test_system.h"

namespace shardmat {
namespace {

using namespace multigrid;
using test::System;

/// All of a matrix on every rank, by the global numbers of rows and columns.
std::map<std::pair<std::int64_t, std::int64_t>, double> whole(const NodeRows& m) {
  const Nodes& rows = *m.rows;
  const std::int64_t all_rows = rows.all() * m.row_size, cols = m.cols->all() * m.col_size;
  std::vector<double> dense(static_cast<std::size_t>(all_rows * cols), 0.0);
  for (std::int64_t i = 0; i < m.count(); ++i)
    for (std::int64_t k = m.start[at(i)]; k < m.start[at(i) + 1]; ++k)
      for (int r = 0; r < m.row_size; ++r)
        for (int c = 0; c < m.col_size; ++c)
          dense[at((rows.global(i) * m.row_size + r) * cols + m.cols->global(m.column[at(k)]) * m.col_size + c)] +=
              m.block(k)[r * m.col_size + c];
  if (!dense.empty()) rows.ranks().all_reduce(std::span<double>(dense), Reduction::sum);
  std::map<std::pair<std::int64_t, std::int64_t>, double> entries;
  for (std::int64_t i = 0; i < all_rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j)
      if (dense[at(i * cols + j)] != 0) entries[{i, j}] = dense[at(i * cols + j)];
  return entries;
}

std::shared_ptr<const NodeCoordinates> coordinates_of(const RowSource& source, const DistributedMatrix& matrix, int size) {
  auto found = std::make_shared<NodeCoordinates>();
  const HostVector<std::int64_t> ids = matrix.y_rows()->ids_by_place();
  for (std::size_t i = 0; i < ids.size(); i += static_cast<std::size_t>(size)) {
    const HostVector<double> one = source.coordinates(ids[i] / size, ids[i] / size + 1);
    found->of_own.insert(found->of_own.end(), one.begin(), one.end());
  }
  return found;
}

/// A matrix by nodes, with rigid-body modes if nodes have three unknowns.
struct Fine {
  test::TestMatrix made;
  NodeRows a;
  Modes modes;
  Fine(const std::string& specification, int size)
      : made(kHost64, specification, LocalSort::none), a(take_nodes(made.matrix, size, nullptr, made.context.stream())) {
    MultigridOptions options;
    if (size == 3) options.coordinates = coordinates_of(*open_matrix(specification, world()).rows, made.matrix, size);
    NearNullSpace space = near_null_space(a, options);
    EXPECT_EQ(space.modes.count, size == 3 ? 6 : size) << space.why;
    modes = std::move(space.modes);
  }
  StrongGraph couplings() const { return strong_couplings(a, CouplingNorms(a), 0.05); }
  NodeRows tentative_to(Modes& coarse, std::int64_t least = 0) const {
    return tentative(make_aggregates(couplings()), modes, a.rows, coarse, least);
  }
  NodeRows prolongation(std::int64_t least = 0) const {
    Modes coarse;
    return smoothed(tentative_to(coarse, least), a, inverse_diagonal(a), 0.5);
  }
};

TEST(Multigrid, TakesTheRowsOfTheMatrix) {
  for (const auto& [specification, size] : {std::pair{"elasticity:n=4,clamp=0.3", 3}, std::pair{"poisson27:n=5", 1}}) {
    const HostCsr expected = test::whole_matrix(specification);
    const auto found = whole(Fine(specification, size).a);
    std::int64_t nonzeros = 0;
    for (std::int64_t i = 0; i < expected.rows; ++i)
      for (std::int64_t k = expected.row_ptr[at(i)]; k < expected.row_ptr[at(i) + 1]; ++k) {
        if (expected.values[at(k)] == 0) continue;
        ++nonzeros;
        const auto entry = found.find({i, expected.col_idx[at(k)]});
        ASSERT_NE(entry, found.end());
        EXPECT_EQ(entry->second, expected.values[at(k)]);
      }
    EXPECT_EQ(std::ssize(found), nonzeros);
  }
}

TEST(Multigrid, AggregatesArePartsOfARank) {
  const Fine fine("elasticity:n=6,clamp=0.2", 3);
  const StrongGraph graph = fine.couplings();
  const Aggregates aggregates = make_aggregates(graph);
  ASSERT_EQ(std::ssize(aggregates.of_node), fine.a.count());
  std::set<std::int32_t> seen;
  for (std::int64_t i = 0; i < fine.a.count(); ++i) {
    const std::int32_t of = aggregates.of_node[at(i)];
    EXPECT_EQ(of < 0, graph.alone[at(i)] != 0);  // clamped nodes are part of none
    if (of >= 0) seen.insert(of);
  }
  EXPECT_EQ(std::ssize(seen), aggregates.count);
  if (!seen.empty()) {
    EXPECT_EQ(*seen.rbegin(), aggregates.count - 1);
  }
}

TEST(Multigrid, ProlongationKeepsTheModes) {
  for (const auto& [specification, size] : {std::pair{"elasticity:n=6,clamp=0.2", 3}, std::pair{"poisson27:n=7", 1}}) {
    const Fine fine(specification, size);
    Modes coarse;
    const NodeRows t = fine.tentative_to(coarse);
    const int m = fine.modes.count;
    for (std::int64_t i = 0; i < t.count(); ++i)
      for (std::int64_t k = t.start[at(i)]; k < t.start[at(i) + 1]; ++k)
        for (int r = 0; r < size; ++r)
          for (int v = 0; v < m; ++v) {
            double sum = 0;
            for (int c = 0; c < m; ++c)
              sum += t.block(k)[r * m + c] * coarse.value[at((std::int64_t{t.column[at(k)]} * m + c) * m + v)];
            EXPECT_NEAR(sum, fine.modes.value[at((i * size + r) * m + v)], 1e-12);
          }
  }
}

/// Of three threads that share rows of A·P; of coarse nodes on all ranks, and on the first one.
TEST(Multigrid, CoarseMatricesAreTripleProducts) {
  const ThreadCount threads(3);
  for (const auto& [specification, size, least] :
       {std::tuple{"elasticity:n=5,clamp=0.2", 3, 0}, std::tuple{"elasticity:n=5,clamp=0.2", 3, 1000},
        std::tuple{"poisson27:n=6", 1, 0}, std::tuple{"poisson7:n=20", 1, 0}, std::tuple{"poisson7:n=20", 1, 1000}}) {
    const Fine fine(specification, size);
    Modes coarse;
    const NodeRows t = fine.tentative_to(coarse, least), p = smoothed(t, fine.a, inverse_diagonal(fine.a), 0.5);
    const WithGhostRows all_p(p, fine.a.cols);
    Galerkin galerkin(p);
    std::int64_t blocks[] = {galerkin.foretold_blocks(fine.a, t, p, all_p), 0};
    const NodeRows product = galerkin(fine.a, p, all_p);
    blocks[1] = product.blocks();
    world().all_reduce(std::span<std::int64_t>(blocks), Reduction::sum);
    EXPECT_LE(10 * blocks[0], 11 * blocks[1]) << specification;
    EXPECT_GE(10 * blocks[0], 8 * blocks[1]) << specification;  // those that other ranks alone make are not foretold
    EXPECT_EQ(product.rows->owners(), least == 0 ? world().size() : 1);
    EXPECT_EQ(whole(p), whole(fine.prolongation()));
    const auto a = whole(fine.a), by_rows = whole(p), transpose = whole(transposed(p, by_column(p))), found = whole(product);
    EXPECT_EQ(whole(galerkin(fine.a, p, all_p)), found);  // once more on the patterns
    ASSERT_EQ(transpose.size(), by_rows.size());
    std::map<std::int64_t, std::vector<std::pair<std::int64_t, double>>> p_rows;
    for (const auto& [place, value] : by_rows) {
      EXPECT_EQ(transpose.at({place.second, place.first}), value);
      p_rows[place.first].emplace_back(place.second, value);
    }
    std::map<std::pair<std::int64_t, std::int64_t>, double> expected;
    double largest = 0;
    for (const auto& [place, value] : a)
      for (const auto& [g, left] : p_rows[place.first])
        for (const auto& [h, right] : p_rows[place.second]) expected[{g, h}] += left * value * right;
    for (const auto& [place, value] : expected) largest = std::max(largest, std::abs(value));
    for (const auto& [place, value] : expected) {
      const auto entry = found.find(place);
      if (place.first == place.second && std::abs(value) < 1e-12 * largest) continue;  // mended
      EXPECT_NEAR(entry == found.end() ? 0 : entry->second, value, 1e-11 * largest);
    }
  }
}

/// Products of all formats against sums over the entries.
TEST(Multigrid, OperatorsMultiply) {
  for (const auto& [specification, size] : {std::pair{"elasticity:n=5,clamp=0.2", 3}, std::pair{"poisson27:n=6", 1}}) {
    const Fine fine(specification, size);
    const NodeRows p = fine.prolongation();
    Context& context = fine.made.context;
    for (NodeRows m : {fine.a, p, brought_home(transposed(p, by_column(p)), false)})
      for (const int columns : {1, 3}) {
        Operator product(m, context, ValueType::f64, columns);
        for (const double factor : {1.0, -2.5}) {  // the second time with new values
          if (factor != 1) {
            for (double& value : m.value) value *= factor;
            product.update(m, context.stream());
          }
          const auto entries = whole(m);
          HostVector<double> x(at(m.cols->own() * m.col_size * columns)), y(at(m.count() * m.row_size * columns), 1.0);
          const auto x_of = [&](std::int64_t row, int column) { return test::x_at(row, column); };
          for (std::size_t i = 0; i < x.size(); ++i)
            x[i] =
                x_of(m.cols->first() * m.col_size + static_cast<std::int64_t>(i) / columns, static_cast<int>(i) % columns);
          product.multiply(2, x.data(), 3, y.data(), context.stream());
          std::map<std::int64_t, std::vector<double>> expected;
          for (const auto& [place, value] : entries)
            for (int c = 0; c < columns; ++c) {
              auto& sums = expected[place.first];
              sums.resize(at(columns), 3.0);
              sums[at(c)] += 2 * value * x_of(place.second, c);
            }
          for (std::size_t i = 0; i < y.size(); ++i) {
            const auto row = expected.find(m.rows->first() * m.row_size + static_cast<std::int64_t>(i) / columns);
            EXPECT_NEAR(y[i], row == expected.end() ? 3 : row->second[i % at(columns)], 1e-11) << specification;
          }
        }
      }
  }
}

void expect_inverse(const NodeRows& matrix, const NodeRows& of) {
  const auto a = whole(of), inverse = whole(matrix);
  const std::int64_t n = of.rows->all() * of.row_size;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < n; ++k) {
        const auto left = a.find({i, k}), right = inverse.find({k, j});
        if (left != a.end() && right != inverse.end()) sum += left->second * right->second;
      }
      EXPECT_NEAR(sum, i == j ? 1 : 0, 1e-10);
    }
}

TEST(Multigrid, TheLastLevelIsInverted) {
  const Fine elastic("elasticity:n=3,clamp=0.4", 3);
  expect_inverse(dense_inverse(elastic.a, {}), elastic.a);
  Fine wind("convection_diffusion:nx=14,ny=1,nz=1,peclet=5", 1);
  expect_inverse(dense_inverse(wind.a, {}, false), wind.a);
  for (std::int64_t i = 0; i < wind.a.count(); ++i) *wind.a.block(wind.a.find(i, static_cast<std::int32_t>(i))) = 0;
  expect_inverse(dense_inverse(wind.a, {}, false), wind.a);  // rows must be exchanged
}

TEST(Multigrid, SeesHowUnsymmetricAMatrixIs) {
  for (const char* const symmetric : {"elasticity:n=5,clamp=0.2", "poisson27:n=6"})
    EXPECT_LT(asymmetry(Fine(symmetric, symmetric[0] == 'e' ? 3 : 1).a), 1e-14) << symmetric;
  for (const char* const peclet : {"0.01", "1", "100"}) {
    const Fine fine(std::string("convection_diffusion:nx=9,ny=8,nz=5,wind=rotating,peclet=") + peclet, 1);
    double difference = 0, norm = 0;
    const auto a = whole(fine.a);
    for (const auto& [place, value] : a) {
      const auto mirrored = a.find({place.second, place.first});
      const double other = mirrored == a.end() ? 0 : mirrored->second;
      difference += (value - other) * (value - other) * (mirrored == a.end() ? 2 : 1), norm += value * value;
    }
    EXPECT_NEAR(asymmetry(fine.a) / std::sqrt(difference / norm), 1, 0.4) << peclet;
  }
}

TEST(Multigrid, PairsFollowTheStrongestCouplings) {
  const Fine fine("convection_diffusion:nx=16,ny=12,nz=1,peclet=1000,wind=rotating", 1);
  const CouplingNorms norms(fine.a);
  const Aggregates pairs = match_pairs(fine.a, norms, 0.05);
  std::map<std::int32_t, std::vector<std::int64_t>> members;
  for (std::int64_t i = 0; i < fine.a.count(); ++i) members[pairs.of_node[at(i)]].push_back(i);
  EXPECT_EQ(members.count(-1), 0u);
  EXPECT_EQ(std::ssize(members), pairs.count);
  std::int64_t single = 0, with_the_wind = 0;
  for (const auto& [aggregate, nodes] : members) {
    EXPECT_LE(nodes.size(), 4u);
    single += nodes.size() == 1 ? 1 : 0;
    bool strong = nodes.size() == 1;
    for (const std::int64_t i : nodes)
      for (const std::int64_t j : nodes) {
        const std::int64_t k = fine.a.find(i, static_cast<std::int32_t>(j));
        strong = strong || (i != j && k >= 0 && std::abs(*fine.a.block(k)) > 10);
      }
    with_the_wind += strong ? 1 : 0;
  }
  EXPECT_EQ(single, pairs.single);
  EXPECT_EQ(with_the_wind, pairs.count);
  EXPECT_LE(3 * pairs.count, 2 * fine.a.count());
}

std::int64_t iterations_of(System& system, SolverOptions options) {
  options.solver = "cg", options.preconditioner = "multigrid", options.rtol = 1e-8, options.max_iterations = 100;
  options.columns = system.b.columns();
  Solver solver(system.at.matrix, options);
  system.x.fill(0, system.stream());
  const SolveResult result = solver.solve(system.b, system.x);
  for (const SolvedColumn& column : result.columns) EXPECT_EQ(column.reason, SolveReason::converged_rtol);
  return result.iterations;
}

TEST(Multigrid, NeedsFewIterations) {
  const std::string elasticity = "elasticity:n=16,uniform,clamp=0.05";
  for (const std::int64_t columns : {1, 3}) {
    System system(kHost64, elasticity, columns);
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
    System system(kHost64, poisson, 1);
    EXPECT_LE(iterations_of(system, {}), 14) << poisson;
  }
  // Strong couplings alone make it too dense; aggregates across weak ones would take 120 iterations.
  System layers(kHost64, "poisson7:n=30,inclusions=1e4,stretch=1x1x3", 1);
  EXPECT_LE(iterations_of(layers, {}), 35);
}

/// All smoothers and cycles; K with a method that takes it.
TEST(Multigrid, SmoothersAndCycles) {
  System system(kHost64, "poisson7:n=20,uniform", 2);
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

/// A vector of several sizes, so that an operator that is not linear shows.
TEST(Multigrid, SolvesUnsymmetricSystems) {
  for (const char* const specification :
       {"convection_diffusion:nx=60,ny=50,nz=1,peclet=100,wind=rotating", "convection_diffusion:n=14,peclet=10"})
    for (const auto& [method, cycle] : {std::pair{"auto", "K"}, std::pair{"gmres", "W"}, std::pair{"bicgstab", "W"}}) {
      System system(kHost64, specification, 2);
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

/// Of V nothing changes; a variant that is named and does not fit is refused.
TEST(Multigrid, TheCycleKTakesTheFlexibleVariantOfCg) {
  System system(kHost64, "elasticity:n=9,clamp=0.1,nu=0.45", 2);
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
  EXPECT_NE(refused(wind, "auto", "X", "auto").find("cycle"), std::string::npos);
  EXPECT_NE(refused(wind, "auto", "V", "l1").find("l1_jacobi"), std::string::npos);
}

/// f32 holds neither 1e-60 nor 1e60.
TEST(Multigrid, AnyScaleOfB) {
  System system(kHost64, "poisson7:n=10,uniform", 1);
  const std::int64_t usual = iterations_of(system, {});
  HostVector<double> values = system.b.own(system.stream());
  for (const double scale : {1e-60, 1e60}) {
    HostVector<double> scaled = values;
    for (double& value : scaled) value *= scale;
    system.b.set_own(scaled, system.stream());
    EXPECT_EQ(iterations_of(system, {}), usual);
  }
}

/// Sums over the rows of P, of coarse nodes on all ranks, and on the first one.
TEST(Multigrid, RestrictionsMultiply) {
  for (const auto& [specification, size] : {std::pair{"elasticity:n=5,clamp=0.2", 3}, std::pair{"poisson27:n=6", 1}})
    for (const std::int64_t least : {0, 1000})
      for (const int columns : {1, 3}) {
        const Fine fine(specification, size);
        NodeRows p = fine.prolongation(least);
        const ByColumn by_columns = by_column(p);
        Context& context = fine.made.context;
        const Restriction to_coarse(p, by_columns, context, ValueType::f64, columns);
        HostVector<double> r(at(p.count() * p.row_size * columns)), found(at(p.cols->own() * p.col_size * columns));
        for (std::size_t i = 0; i < r.size(); ++i) r[i] = test::x_at(p.rows->first() + static_cast<std::int64_t>(i), 1);
        to_coarse.multiply(r.data(), found.data(), context.stream());
        HostVector<double> expected(at(p.cols->all() * p.col_size * columns), 0.0);
        for (std::int64_t i = 0; i < p.count(); ++i)
          for (std::int64_t k = p.start[at(i)]; k < p.start[at(i) + 1]; ++k)
            for (int a = 0; a < p.row_size; ++a)
              for (int b = 0; b < p.col_size; ++b)
                for (int c = 0; c < columns; ++c)
                  expected[at((p.cols->global(p.column[at(k)]) * p.col_size + b) * columns + c)] +=
                      p.block(k)[a * p.col_size + b] * r[at((i * p.row_size + a) * columns + c)];
        world().all_reduce(std::span<double>(expected), Reduction::sum);
        const std::int64_t first = p.cols->first() * p.col_size * columns;
        for (std::size_t i = 0; i < found.size(); ++i)
          EXPECT_NEAR(found[i], expected[at(first) + i], 1e-11 * (1 + std::abs(found[i]))) << specification;
      }
}

TEST(Multigrid, SolvesFloatingSystems) {
  LoadOptions load = test::options_for(kHost64, LocalSort::none);
  Context& context = context_of(kHost64);
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

/// Stiffnesses that change by a fifth from element to element, and by 1e5 altogether.
TEST(Multigrid, RefreshTakesNewValues) {
  LoadOptions load = test::options_for(kHost64, LocalSort::none);
  load.values = Values::updatable;
  Context& context = context_of(kHost64);
  for (const char* const refresh : {"keep", "smooth", "anew"}) {
    DistributedMatrix matrix(open_matrix("poisson7:n=16,uniform", world()), context, load);
    DistributedVector b(matrix, VectorLayout::rows, ValueType::f64), x(matrix, VectorLayout::rows, ValueType::f64);
    HostVector<double> of_b;
    for (const std::int64_t id : matrix.y_rows()->ids_by_place()) of_b.push_back(test::x_at(id, 0));
    b.set_own(of_b, context.stream());
    SolverOptions options;
    options.preconditioner = "multigrid", options.rtol = 1e-8;
    options.preconditioning.multigrid.refresh = refresh;
    Solver solver(matrix, options);
    const std::int64_t before = solver.solve(b, x).iterations;
    const auto source = open_matrix("poisson7:n=16,uniform", world()).rows;
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

TEST(Multigrid, TakesGivenVectors) {
  const std::string elasticity = "elasticity:n=12,uniform,clamp=0.05";
  System system(kHost64, elasticity, 1);
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

TEST(Multigrid, TellsItsLevels) {
  System system(kHost64, "poisson7:n=12,uniform", 1);
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
  EXPECT_NE(refused(wrong).find("2 or 3 coordinates, not 4"), std::string::npos);
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
