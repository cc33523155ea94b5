// Multigrid against dense linear algebra, and what its iterations may be.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "partition/source/row_source.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/multigrid/aggregate.h"
#include "runtime/solvers/multigrid/coarse.h"
#include "runtime/solvers/multigrid/galerkin.h"
#include "runtime/solvers/multigrid/near_null_space.h"
#include "runtime/solvers/multigrid/operator.h"
#include "runtime/solvers/multigrid/prolong.h"
#include "runtime/solvers/multigrid/report.h"
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
  NodeRows tentative_to(Modes& coarse) const { return tentative(make_aggregates(couplings()), modes, a.rows, coarse); }
  NodeRows prolongation() const {
    Modes coarse;
    return smoothed(tentative_to(coarse), a, inverse_diagonal(a), 0.5);
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

TEST(Multigrid, CoarseMatricesAreTripleProducts) {
  for (const auto& [specification, size] : {std::pair{"elasticity:n=5,clamp=0.2", 3}, std::pair{"poisson27:n=6", 1}}) {
    const Fine fine(specification, size);
    const NodeRows p = fine.prolongation();
    const WithGhostRows all_p(p, fine.a.cols);
    Galerkin galerkin(fine.a, p, all_p);
    const auto a = whole(fine.a), by_rows = whole(p), transpose = whole(transposed(p, by_column(p))),
               found = whole(galerkin(fine.a, p, all_p));
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
    for (NodeRows m : {fine.a, p, transposed(p, by_column(p))})
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

TEST(Multigrid, TheLastLevelIsInverted) {
  const Fine fine("elasticity:n=3,clamp=0.4", 3);
  const auto a = whole(fine.a), inverse = whole(dense_inverse(fine.a, {}));
  const std::int64_t n = fine.a.rows->all() * 3;
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
  }
  EXPECT_DOUBLE_EQ(report->operator_complexity, all / static_cast<double>(report->levels[0].nonzeros));
  EXPECT_GT(report->bytes, 8 * report->levels[0].nonzeros);
  EXPECT_EQ(Solver(system.at.matrix, {}).preconditioner().multigrid(), nullptr);
}

TEST(Multigrid, RefusesWhatDoesNotFit) {
  System system(kHost64, "elasticity:n=4,clamp=0.3", 1);
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
