// Multigrid on frames of beams, whose nodes have displacements and rotations.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "tests/runtime/solvers/own_system.h"

namespace shardmat {
namespace {

using test::csr_of;
using test::Own;

/// n × n × n nodes of 6 unknowns at distances of 1, joined by beams along the axes (Euler and Bernoulli; much stiffer along
/// than across). The nodes with x = 0 are clamped: rows of the identity.
HostCsr space_frame(std::int64_t n) {
  constexpr double kAlong = 200, kTwist = 1, kBend = 1;
  const auto number = [n](std::array<std::int64_t, 3> at) { return (at[2] * n + at[1]) * n + at[0]; };
  return csr_of(6 * n * n * n, [&](std::int64_t row, const auto& entry) {
    const std::int64_t node = row / 6, dof = row % 6;
    const std::array<std::int64_t, 3> here{node % n, node / n % n, node / n / n};
    std::map<std::int64_t, double> sums;  // zeros among them, as programs assemble blocks
    for (int axis = 0; axis < 3; ++axis)
      for (const int end : {0, 1}) {  // this node is the first or the second one of the beam
        std::array<std::int64_t, 3> other = here;
        other[static_cast<std::size_t>(axis)] += end == 0 ? 1 : -1;
        if (other[static_cast<std::size_t>(axis)] < 0 || other[static_cast<std::size_t>(axis)] >= n) continue;
        const std::int64_t ends[] = {end == 0 ? node : number(other), end == 0 ? number(other) : node};
        for (int u = 0; u < 6; ++u) sums[6 * ends[0] + u] += 0, sums[6 * ends[1] + u] += 0;
        const bool held = other[0] == 0;
        if (here[0] == 0) continue;
        // A part of the element: unknowns of both nodes, and its stiffness.
        const auto add = [&](const std::array<std::pair<int, int>, 4>& of, int count, const double(&k)[4][4],
                             double factor) {
          for (int i = 0; i < count; ++i) {
            if (of[static_cast<std::size_t>(i)] != std::pair(end, static_cast<int>(dof))) continue;
            for (int j = 0; j < count; ++j) {
              const auto [which, unknown] = of[static_cast<std::size_t>(j)];
              if (which == end || !held) sums[6 * ends[which] + unknown] += factor * k[i][j];
            }
          }
        };
        const int a = axis, b = (axis + 1) % 3, c = (axis + 2) % 3;
        const double bar[4][4] = {{1, -1}, {-1, 1}};
        const double up[4][4] = {{12, 6, -12, 6}, {6, 4, -6, 2}, {-12, -6, 12, -6}, {6, 2, -6, 4}};
        const double down[4][4] = {{12, -6, -12, -6}, {-6, 4, 6, 2}, {-12, 6, 12, 6}, {-6, 2, 6, 4}};
        add({{{0, a}, {1, a}, {}, {}}}, 2, bar, kAlong);
        add({{{0, 3 + a}, {1, 3 + a}, {}, {}}}, 2, bar, kTwist);
        add({{{0, b}, {0, 3 + c}, {1, b}, {1, 3 + c}}}, 4, up, kBend);
        add({{{0, c}, {0, 3 + b}, {1, c}, {1, 3 + b}}}, 4, down, kBend);
      }
    if (here[0] == 0) sums[row] = 1;
    for (const auto& [column, value] : sums) entry(column, value);
  });
}

/// The same in the plane, with two displacements and a rotation a node.
HostCsr plane_frame(std::int64_t n) {
  constexpr double kAlong = 200;
  return csr_of(3 * n * n, [&](std::int64_t row, const auto& entry) {
    const std::int64_t node = row / 3, dof = row % 3, x = node % n, y = node / n;
    std::map<std::int64_t, double> sums;
    for (const int axis : {0, 1})
      for (const int end : {0, 1}) {
        const std::int64_t step = end == 0 ? 1 : -1, ox = x + (axis == 0 ? step : 0), oy = y + (axis == 1 ? step : 0);
        if (ox < 0 || oy < 0 || ox >= n || oy >= n) continue;
        const std::int64_t ends[] = {end == 0 ? node : oy * n + ox, end == 0 ? oy * n + ox : node};
        for (int u = 0; u < 3; ++u) sums[3 * ends[0] + u] += 0, sums[3 * ends[1] + u] += 0;
        if (x == 0) continue;
        const double s = axis == 0 ? 1 : -1;  // across: v for a beam along x, -u along y
        const double of_bend[4][4] = {
            {12, 6 * s, -12, 6 * s}, {6 * s, 4, -6 * s, 2}, {-12, -6 * s, 12, -6 * s}, {6 * s, 2, -6 * s, 4}};
        for (int j : {0, 1}) {
          if (j != end && ox == 0) continue;
          if (dof == axis) sums[3 * ends[j] + axis] += j == end ? kAlong : -kAlong;
          const int mine = dof == 2 ? 1 : 0;
          if (dof == axis) continue;
          sums[3 * ends[j] + 1 - axis] += of_bend[2 * end + mine][2 * j];
          sums[3 * ends[j] + 2] += of_bend[2 * end + mine][2 * j + 1];
        }
      }
    if (x == 0) sums[row] = 1;
    for (const auto& [column, value] : sums) entry(column, value);
  });
}

std::shared_ptr<const NodeCoordinates> grid_points(const DistributedMatrix& matrix, std::int64_t n, int dimensions,
                                                   int size) {
  auto points = std::make_shared<NodeCoordinates>();
  points->dimensions = dimensions;
  const HostVector<std::int64_t> ids = matrix.y_rows()->ids_by_place();
  for (std::size_t i = 0; i < ids.size(); i += static_cast<std::size_t>(size)) {
    std::int64_t node = ids[i] / size;
    for (int d = 0; d < dimensions; ++d, node /= n) points->of_own.push_back(static_cast<double>(node % n));
  }
  return points;
}

void rotations_are_rigid_modes(HostCsr frame, std::int64_t n, int dimensions, int size, const std::string& why) {
  Own own(std::move(frame), context_of(kHost64));
  if (block_jacobi_size(*own.matrix) != size) GTEST_SKIP() << "this rank's share cuts a node";
  SolverOptions options;
  options.solver = "cg", options.preconditioner = "multigrid", options.rtol = 1e-9;
  std::int64_t iterations[2];
  for (const bool known : {false, true}) {
    options.preconditioning.multigrid.coordinates = known ? grid_points(*own.matrix, n, dimensions, size) : nullptr;
    Solver solver(*own.matrix, options);
    own.x->fill(0, own.context.stream());
    const SolveResult result = solver.solve(*own.b, *own.x);
    EXPECT_TRUE(result.converged());
    EXPECT_LE(own.backward_error(), 1e-8);
    iterations[known ? 1 : 0] = result.iterations;
    if (known) {
      EXPECT_NE(solver.preconditioner().describe().find(why), std::string::npos) << solver.preconditioner().describe();
    }
  }
  EXPECT_LE(5 * iterations[1], 4 * iterations[0]);
}

TEST(Frames, RotationsInSpaceAreRigidModes) { rotations_are_rigid_modes(space_frame(12), 12, 3, 6, "6 rigid-body modes"); }
TEST(Frames, RotationsInThePlaneAreRigidModes) {
  rotations_are_rigid_modes(plane_frame(30), 30, 2, 3, "3 rigid-body modes");
}

}  // namespace
}  // namespace shardmat
