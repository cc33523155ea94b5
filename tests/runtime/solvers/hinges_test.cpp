// Couplings that leave a motion free.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>

#include "runtime/solvers/multigrid/hinges.h"
#include "runtime/source/matrix_source.h"
#include "tests/runtime/solvers/test_system.h"

namespace shardmat {
namespace {

using namespace multigrid;
using Block = std::array<double, 4>;

/// Stiffness `along` the direction (0.6, 0.8) and `across` it.
Block turned(double along, double across) {
  return {0.36 * along + 0.64 * across, 0.48 * (along - across), 0.48 * (along - across), 0.64 * along + 0.36 * across};
}

/// Four nodes of two unknowns on each rank, in a chain over all ranks.
TEST(Hinges, AreFoundByTheirFreeMotion) {
  const std::int64_t n = 4 * world().size();
  std::vector<std::int64_t> starts(1, 0);
  std::map<std::pair<std::int64_t, std::int64_t>, Block> blocks;
  const auto add = [&](std::int64_t i, std::int64_t j, const Block& block, double factor) {
    for (std::size_t e = 0; e < 4; ++e) blocks[{i, j}][e] += factor * block[e];
  };
  for (std::int64_t i = 0; i < n; ++i) add(i, i, turned(0.5, 0.5), 1);
  for (std::int64_t p = 0; p < world().size(); ++p) {
    starts.push_back(4 * p + 4);
    const std::array<Block, 4> springs = {turned(3, 1), turned(1e-6, 2), turned(2, 0.05),
                                          turned(1, 1e-6)};  // the last: to p + 1
    for (std::int64_t s = 0; s < 4; ++s) {
      const std::int64_t i = 4 * p + s, j = i + 1;
      if (j == n) continue;
      add(i, i, springs[at(s)], 1), add(j, j, springs[at(s)], 1);
      add(i, j, springs[at(s)], -1), add(j, i, springs[at(s)], -1);
    }
    // The first node has an unknown that is coupled with none, as an aggregate of one node has.
    for (auto& [place, block] : blocks) {
      if (place.first == 4 * p) block[2] = block[3] = 0;
      if (place.second == 4 * p) block[1] = block[3] = 0;
      if (place.first == 4 * p && place.second == 4 * p) block[3] = 1;
    }
  }
  Lists lists;
  lists.each = 4;
  for (std::int64_t i = 4 * world().rank(); i < 4 * world().rank() + 4; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      const auto found = blocks.find({i, j});
      if (found == blocks.end()) continue;
      lists.id.push_back(j);
      lists.value.insert(lists.value.end(), found->second.begin(), found->second.end());
    }
    lists.start.push_back(std::ssize(lists.id));
  }
  const NodeRows a = square_from_lists(lists, 2, starts, world());
  const HostVector<char> hinges = find_hinges(a, inverse_diagonal(a));
  ASSERT_EQ(std::ssize(hinges), a.blocks());
  for (std::int64_t i = 0; i < a.count(); ++i)
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k) {
      const std::int64_t j = a.column[at(k)];
      EXPECT_EQ(hinges[at(k)] != 0, (i == 1 && j == 2) || (i == 2 && j == 1)) << i << " " << j;
    }
}

/// Where an aggregate joins two inclusions that touch along an edge, iterations double.
TEST(Hinges, StiffInclusionsTakeFewIterations) {
  const std::string inclusions = "elasticity:n=21,uniform,inclusions=1e4,clamp=0.01,seed=6";
  test::System system(kHost64, inclusions, 1);
  SolverOptions options;
  options.solver = "cg", options.preconditioner = "multigrid", options.rtol = 1e-6;
  options.preconditioning.multigrid.coordinates =
      test::coordinates_of(*open_matrix(inclusions, world()).rows, system.at.matrix, 3);
  Solver solver(system.at.matrix, options);
  const SolveResult result = solver.solve(system.b, system.x);
  EXPECT_TRUE(result.converged());
  EXPECT_LE(result.iterations, 20);
}

}  // namespace
}  // namespace shardmat
