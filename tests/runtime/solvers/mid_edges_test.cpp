// Quadratic elements: the first coarse level has no nodes in the middle of edges.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/multigrid/known_nodes.h"
#include "runtime/solvers/multigrid/mid_edges.h"
#include "runtime/solvers/multigrid/near_null_space.h"
#include "runtime/solvers/multigrid/report.h"
#include "runtime/solvers/multigrid/take_nodes.h"
#include "runtime/solvers/solver.h"
#include "runtime/source/matrix_source.h"
#include "tests/runtime/solvers/test_system.h"

namespace shardmat::multigrid {
namespace {

using test::System;

const std::string kQuadratic = "elasticity:mesh=" SHARDMAT_TEST_DATA "/box.h5,degree=2";

/// The matrix of a mesh, and what its source knows of the nodes.
struct Mesh {
  explicit Mesh(const std::string& specification, LocalSort sort = LocalSort::none)
      : system(kHost64, specification, 1, sort) {
    const MatrixSource source = open_matrix(specification, world());
    options.preconditioner = "multigrid", options.rtol = 1e-8, options.max_iterations = 100;
    MultigridOptions& multigrid = options.preconditioning.multigrid;
    multigrid.coarse_size = 60;
    multigrid.coordinates = find_node_coordinates(system.at.matrix, *source.rows);
    multigrid.mid_edges = middles = find_mid_edges(system.at.matrix, *source.rows);
  }
  System system;
  SolverOptions options;
  std::shared_ptr<const MidEdgeNodes> middles;
};

/// Edges of this mesh are straight, so that P keeps motions of the body.
TEST(MidEdges, TakeTheMeanOfTheirEnds) {
  Mesh mesh(kQuadratic);
  const NodeRows a = take_nodes(mesh.system.at.matrix, 3, nullptr, mesh.system.stream());
  const Modes modes = near_null_space(a, mesh.options.preconditioning.multigrid).modes;
  ASSERT_EQ(modes.count, 6);
  const MidEdges found = number_mid_edges(mesh.middles.get(), *mesh.system.at.matrix.y_rows(), 3, world());
  const MidEdgeTransfer to = drop_mid_edges(a, modes, found);
  EXPECT_EQ(to.p.cols->all(), 144);  // the points of the mesh
  const HostVector<double> ghosts = to.p.cols->fetch<double>(to.modes.value, 18);
  std::int64_t middles = 0;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    const std::int64_t blocks = to.p.start[at(i) + 1] - to.p.start[at(i)];
    middles += blocks == 2;
    for (int r = 0; r < 3; ++r)
      for (int v = 0; v < 6; ++v) {
        double sum = 0;
        for (std::int64_t k = to.p.start[at(i)]; k < to.p.start[at(i) + 1]; ++k) {
          const std::int64_t j = to.p.column[at(k)];
          const double* const of_corner =
              j < to.p.cols->own() ? to.modes.value.data() + j * 18 : ghosts.data() + (j - to.p.cols->own()) * 18;
          for (int c = 0; c < 3; ++c) sum += to.p.block(k)[r * 3 + c] * of_corner[c * 6 + v];
        }
        EXPECT_NEAR(sum, modes.value[at((i * 3 + r) * 6 + v)], 1e-12);
      }
  }
  EXPECT_EQ(middles, std::ssize(mesh.middles->of_own) / 3);
  EXPECT_EQ(world().all_reduce(middles, Reduction::sum), a.rows->all() - 144);
}

TEST(MidEdges, SolveInFewerIterations) {
  for (const LocalSort sort : {LocalSort::none, LocalSort::by_length}) {
    Mesh mesh(kQuadratic + ",clamp=0.05", sort);
    const HostCsr whole = test::whole_matrix(kQuadratic + ",clamp=0.05");
    Solver solver(mesh.system.at.matrix, mesh.options);
    const MultigridReport* const report = solver.preconditioner().multigrid();
    ASSERT_NE(report, nullptr);
    EXPECT_EQ(report->levels[1].unknowns, 3 * 144);
    const SolveResult result = solver.solve(mesh.system.b, mesh.system.x);
    EXPECT_TRUE(result.converged());
    EXPECT_LE(mesh.system.residual(whole, 0), 1.01e-8 * result.columns[0].norm_of_b);
    mesh.options.preconditioning.multigrid.mid_edges = nullptr;
    mesh.system.x.fill(0, mesh.system.stream());
    EXPECT_LE(result.iterations, Solver(mesh.system.at.matrix, mesh.options).solve(mesh.system.b, mesh.system.x).iterations);
    for (const char* const refresh : {"keep", "smooth", "anew"}) {  // the same values again
      mesh.options.preconditioning.multigrid.mid_edges = mesh.middles;
      mesh.options.preconditioning.multigrid.refresh = refresh;
      Solver again(mesh.system.at.matrix, mesh.options);
      again.refresh();
      mesh.system.x.fill(0, mesh.system.stream());
      EXPECT_LE(again.solve(mesh.system.b, mesh.system.x).iterations, result.iterations + 1) << refresh;
    }
  }
}

TEST(MidEdges, RefuseWhatIsWrong) {
  Mesh mesh(kQuadratic + ",clamp=0.05");
  const auto refused = [&](ErrorKind kind, const auto& change) {
    MidEdgeNodes middles = *mesh.middles;
    if (world().rank() + 1 == world().size()) change(middles.of_own);
    mesh.options.preconditioning.multigrid.mid_edges = std::make_shared<MidEdgeNodes>(std::move(middles));
    return error_of(kind, [&] { Solver(mesh.system.at.matrix, mesh.options); });
  };
  using List = HostVector<std::int64_t>;
  if (world().rank() + 1 == world().size()) {
    EXPECT_GE(std::ssize(mesh.middles->of_own), 6);
  }
  EXPECT_NE(refused(ErrorKind::input, [](List& of) { of.pop_back(); }).find("three numbers"), std::string::npos);
  EXPECT_NE(refused(ErrorKind::input, [](List& of) { of[0] = 1 << 20; }).find("none of this rank's nodes"),
            std::string::npos);
  EXPECT_NE(refused(ErrorKind::input, [](List& of) { of[1] = -1; }).find("has the end -1"), std::string::npos);
  EXPECT_NE(refused(ErrorKind::input, [](List& of) { of.insert(of.end(), of.begin(), of.begin() + 3); }).find("comes twice"),
            std::string::npos);
  EXPECT_NE(refused(ErrorKind::input, [](List& of) { of[4] = of[0]; }).find("a mid-edge node itself"), std::string::npos);
  if (world().size() == 1) return;
  mesh.options.preconditioning.multigrid.mid_edges = world().rank() == 0 ? nullptr : mesh.middles;
  EXPECT_NE(error_of(ErrorKind::usage, [&] { Solver(mesh.system.at.matrix, mesh.options); }).find("others none"),
            std::string::npos);
}

}  // namespace
}  // namespace shardmat::multigrid
