// A null space that is given as vectors: checked, made a basis, removed from b and x.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "runtime/solvers/loop/null_space.h"
#include "runtime/solvers/multigrid/known_nodes.h"
#include "tests/runtime/solvers/test_system.h"

namespace shardmat {
namespace {

constexpr int kModes = 6;
const char* const kFloating = "elasticity:n=5,uniform";

/// Translations and rotations of this rank's nodes, neither orthogonal nor of one scale. `wrong` other than 1: no rotations.
NearNullVectors motions_of(const DistributedMatrix& matrix, double wrong = 1) {
  const auto nodes = find_node_coordinates(matrix, *matrix.nodes());
  const HostVector<std::int64_t> ids = matrix.y_rows()->ids_by_place();
  NearNullVectors all{kModes, HostVector<double>(ids.size() * kModes, 0.0)};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto c = static_cast<std::size_t>(ids[i] % 3), next = (c + 1) % 3, last = (c + 2) % 3;
    const double* const at = nodes->of_own.data() + i / 3 * 3;
    double* const of_row = all.of_own.data() + i * kModes;
    of_row[c] = 1;
    of_row[3 + next] = 1e3 * at[last], of_row[3 + last] = -1e3 * wrong * at[next];
    of_row[3 + c] = 1;  // a part of the translation
  }
  return all;
}

std::string refusal(test::System& system, const SolverOptions& options, ErrorKind kind) {
  try {
    Solver(system.at.matrix, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_EQ(error.setting(),
              kind == ErrorKind::usage && options.null_space != NullSpace::automatic ? "null_space" : "null_vectors");
    return error.what();
  }
  return "nothing was refused";
}

/// The vectors are orthogonal over all ranks, and of the norm √n.
TEST(NullVectors, BecomeABasis) {
  test::System system(kHost64, kFloating, 1);
  const NullVectors basis = basis_of(system.at.matrix, motions_of(system.at.matrix));
  std::vector<double> products(kModes * kModes, 0.0);
  for (std::size_t i = 0; i < basis.of_own.size(); i += kModes)
    for (std::size_t u = 0; u < kModes; ++u)
      for (std::size_t v = 0; v < kModes; ++v) products[u * kModes + v] += basis.of_own[i + u] * basis.of_own[i + v];
  world().all_reduce(std::span<double>(products), Reduction::sum);
  const auto n = static_cast<double>(system.at.matrix.rows());
  for (std::size_t u = 0; u < kModes; ++u)
    for (std::size_t v = 0; v < kModes; ++v) EXPECT_NEAR(products[u * kModes + v], u == v ? n : 0, 1e-9 * n);
}

void removes_motions(const Case& c) {
  for (const char* const preconditioner : {"none", "jacobi", "block_jacobi", "multigrid"}) {
    if (c.backend == BackendChoice::cuda && std::string(preconditioner) == "multigrid") continue;
    test::System system(c, kFloating, 2);
    SolverOptions options;
    options.solver = "cg", options.preconditioner = preconditioner, options.columns = 2;
    options.null_vectors = std::make_shared<const NearNullVectors>(motions_of(system.at.matrix));
    Solver solver(system.at.matrix, options);
    const SolveResult result = solver.solve(system.b, system.x);
    EXPECT_EQ(result.null_vectors, kModes);
    EXPECT_EQ(result.null_space, "6 given vectors");
    const HostCsr a = test::whole_matrix(kFloating);
    const double tolerance = c.type == ValueType::f64 ? 1e-8 : 1e-3;
    for (std::int64_t j = 0; j < 2; ++j) {
      const SolvedColumn& column = result.columns[static_cast<std::size_t>(j)];
      EXPECT_TRUE(converged(column.reason)) << preconditioner;
      EXPECT_GT(column.removed_from_b, 0.1);
      // What is left is what no x can reach.
      EXPECT_NEAR(system.residual(a, j), column.removed_from_b, tolerance * column.norm_of_b + 1e-3 * tolerance);
    }
    const NullSpaceProjector projector(system.at.matrix, basis_of(system.at.matrix, *options.null_vectors), 2);
    for (const double left : projector.measure(solver.product(), system.x, system.stream()).removed)
      EXPECT_LE(left, 1e3 * tolerance);
    solver.refresh();  // still the null space
  }
}
SHARDMAT_VECTOR_TEST(NullVectors, AreRemoved, removes_motions)

TEST(NullVectors, NewValuesAreLookedAt) {
  LoadOptions load = test::options_for(kHost64);
  load.values = Values::updatable;
  DistributedMatrix matrix(open_matrix(kFloating, world()), context_of(kHost64), load);
  SolverOptions options;
  options.preconditioner = "jacobi", options.null_vectors = std::make_shared<const NearNullVectors>(motions_of(matrix));
  Solver solver(matrix, options);
  const std::vector<double> ones(static_cast<std::size_t>(matrix.local_nnz()), 1.0);
  matrix.update_values(ones, matrix.context().stream());
  EXPECT_THROW(solver.refresh(), Error);
}

TEST(NullVectors, WhatIsNoneIsRefused) {
  test::System floating(kHost64, kFloating, 1), held(kHost64, "elasticity:n=5,uniform,clamp=0.3", 1);
  const auto with = [](NearNullVectors vectors) {
    SolverOptions options;
    options.null_vectors = std::make_shared<const NearNullVectors>(std::move(vectors));
    return options;
  };
  const NearNullVectors good = motions_of(floating.at.matrix);
  EXPECT_NE(refusal(held, with(motions_of(held.at.matrix)), ErrorKind::usage).find("does not map to 0"), std::string::npos);
  EXPECT_NE(refusal(floating, with(motions_of(floating.at.matrix, 2)), ErrorKind::usage).find("does not map to 0"),
            std::string::npos);
  NearNullVectors twice = good;
  for (std::size_t i = 0; i < twice.of_own.size(); i += kModes) twice.of_own[i + 4] = twice.of_own[i] - twice.of_own[i + 2];
  EXPECT_NE(refusal(floating, with(twice), ErrorKind::input).find("vector 5 of the 6"), std::string::npos);
  NearNullVectors zero = good;
  for (std::size_t i = 0; i < zero.of_own.size(); i += kModes) zero.of_own[i + 1] = 0;
  EXPECT_NE(refusal(floating, with(zero), ErrorKind::input).find("is 0 in all unknowns"), std::string::npos);
  NearNullVectors nan = good;
  if (!nan.of_own.empty() && world().rank() + 1 == world().size()) nan.of_own.back() = NAN;
  EXPECT_NE(refusal(floating, with(nan), ErrorKind::input).find("NaN"), std::string::npos);
  NearNullVectors few = good;
  few.of_own.resize(few.of_own.size() / 2);
  EXPECT_NE(refusal(floating, with(few), ErrorKind::usage).find("give"), std::string::npos);
  SolverOptions both = with(good);
  both.null_space = NullSpace::constant;
  EXPECT_NE(refusal(floating, both, ErrorKind::usage).find("null_space is constant"), std::string::npos);
}

}  // namespace
}  // namespace shardmat
