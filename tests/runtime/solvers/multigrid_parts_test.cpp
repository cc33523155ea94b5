// The parts of multigrid's set-up against dense linear algebra.
#include <gtest/gtest.h>

#include <cmath>
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
#include "runtime/solvers/multigrid/restriction.h"
#include "runtime/solvers/multigrid/take_nodes.h"
#include "runtime/source/matrix_source.h"
#include "tests/runtime/solvers/test_system.h"

namespace shardmat {
namespace {

using namespace multigrid;
using test::coordinates_of;

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

TEST(MultigridParts, TakesTheRowsOfTheMatrix) {
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

TEST(MultigridParts, AggregatesArePartsOfARank) {
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

TEST(MultigridParts, ProlongationKeepsTheModes) {
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
TEST(MultigridParts, CoarseMatricesAreTripleProducts) {
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
TEST(MultigridParts, OperatorsMultiply) {
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

TEST(MultigridParts, TheLastLevelIsInverted) {
  const Fine elastic("elasticity:n=3,clamp=0.4", 3);
  expect_inverse(dense_inverse(elastic.a, {}), elastic.a);
  Fine wind("convection_diffusion:nx=14,ny=1,nz=1,peclet=5", 1);
  expect_inverse(dense_inverse(wind.a, {}, false), wind.a);
  for (std::int64_t i = 0; i < wind.a.count(); ++i) *wind.a.block(wind.a.find(i, static_cast<std::int32_t>(i))) = 0;
  expect_inverse(dense_inverse(wind.a, {}, false), wind.a);  // rows must be exchanged
}

TEST(MultigridParts, SeesHowUnsymmetricAMatrixIs) {
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

TEST(MultigridParts, PairsFollowTheStrongestCouplings) {
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

/// Sums over the rows of P, of coarse nodes on all ranks, and on the first one.
TEST(MultigridParts, RestrictionsMultiply) {
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

}  // namespace
}  // namespace shardmat
