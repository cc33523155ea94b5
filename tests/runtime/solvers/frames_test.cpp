// Multigrid on frames of beams, whose nodes have displacements and rotations.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "kernels/base/error.h"
#include "runtime/solvers/loop/preconditioner.h"
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

using Axes = std::array<double, 9>;

/// Those of a node's own system; of clamped nodes the global ones.
Axes axes_of(std::int64_t node, std::int64_t n) {
  if (node % n == 0) return {1, 0, 0, 0, 1, 0, 0, 0, 1};
  const double a = 0.37 * static_cast<double>(node % 17), b = 0.61 * static_cast<double>(node % 11);
  const double ca = std::cos(a), sa = std::sin(a), cb = std::cos(b), sb = std::sin(b);
  return {ca * cb, sa * cb, -sb, -sa, ca, 0, ca * sb, sa * sb, cb};
}

/// The same frame with displacements along each node's own axes (`displacements`) and rotations about them.
HostCsr turned(const HostCsr& frame, std::int64_t n, bool displacements) {
  const auto turn = [&](std::int64_t unknown, int k) {  // row k of the part that `unknown` is in
    const auto r = static_cast<std::size_t>(unknown % 3);
    if (unknown % 6 < 3 && !displacements) return static_cast<int>(r) == k ? 1.0 : 0.0;
    return axes_of(unknown / 6, n)[3 * r + static_cast<std::size_t>(k)];
  };
  return csr_of(frame.rows, [&](std::int64_t row, const auto& entry) {
    std::map<std::int64_t, double> sums;
    for (int k = 0; k < 3; ++k) {
      const auto from = static_cast<std::size_t>(row - row % 3 + k);
      for (std::int64_t e = frame.row_ptr[from]; e < frame.row_ptr[from + 1]; ++e) {
        const std::int64_t column = frame.col_idx[static_cast<std::size_t>(e)], first = column - column % 3;
        for (std::int64_t to = first; to < first + 3; ++to)
          sums[to] += turn(row, k) * frame.values[static_cast<std::size_t>(e)] * turn(to, static_cast<int>(column % 3));
      }
    }
    for (const auto& [column, value] : sums) entry(column, value);
  });
}

/// Grid points with the axes of the nodes.
std::shared_ptr<const NodeCoordinates> points_with_axes(const DistributedMatrix& matrix, std::int64_t n) {
  const std::shared_ptr<const NodeCoordinates> points = grid_points(matrix, n, 3, 6);
  auto both = std::make_shared<NodeCoordinates>();
  both->dimensions = NodeCoordinates::kWithAxes;
  const HostVector<std::int64_t> ids = matrix.y_rows()->ids_by_place();
  for (std::size_t i = 0; i < ids.size(); i += 6) {
    const auto place = points->of_own.begin() + static_cast<std::ptrdiff_t>(i / 2);
    both->of_own.insert(both->of_own.end(), place, place + 3);
    for (const double number : axes_of(ids[i] / 6, n)) both->of_own.push_back(number);
  }
  return both;
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

/// The modes of turned nodes are as good as those of others: A maps them to 0, and as many iterations are enough.
TEST(Frames, NodesMayHaveAxesOfTheirOwn) {
  constexpr std::int64_t n = 9;
  const HostCsr frame = space_frame(n);
  SolverOptions options;
  options.solver = "cg", options.preconditioner = "multigrid", options.rtol = 1e-9;
  const auto iterations = [&](const HostCsr& a, bool with_axes, bool known, const std::string& why) -> std::int64_t {
    Own own(a, context_of(kHost64));
    if (block_jacobi_size(*own.matrix) != 6) return 0;
    options.preconditioning.multigrid.coordinates = !known      ? nullptr
                                                    : with_axes ? points_with_axes(*own.matrix, n)
                                                                : grid_points(*own.matrix, n, 3, 6);
    Solver solver(*own.matrix, options);
    const SolveResult result = solver.solve(*own.b, *own.x);
    EXPECT_TRUE(result.converged());
    EXPECT_LE(own.backward_error(), 1e-8);
    EXPECT_NE(solver.preconditioner().describe().find(why), std::string::npos) << solver.preconditioner().describe();
    return result.iterations;
  };
  const std::int64_t straight = iterations(frame, false, true, "6 rigid-body modes;");
  if (straight == 0) GTEST_SKIP() << "this rank's share cuts a node";
  const HostCsr all = turned(frame, n, true), rotations = turned(frame, n, false);
  EXPECT_LE(iterations(all, true, true, "6 rigid-body modes along the axes of the nodes"), straight + 3);
  EXPECT_LE(iterations(rotations, true, true, "6 rigid-body modes, displacements along the global axes"), straight + 3);
  EXPECT_LE(iterations(frame, true, true, "6 constants: A maps rigid-body modes to almost 0"), 40 * straight);
  EXPECT_GE(iterations(all, false, true, "6 constants: A maps rigid-body modes to almost 0"), straight * 5 / 4);
}

TEST(Frames, AxesAreLookedAt) {
  Own own(space_frame(4), context_of(kHost64));
  SolverOptions options;
  options.solver = "cg", options.preconditioner = "multigrid";
  auto skewed = std::make_shared<NodeCoordinates>(*points_with_axes(*own.matrix, 4));
  if (block_jacobi_size(*own.matrix) != 6) GTEST_SKIP() << "this rank's share cuts a node";
  if (!skewed->of_own.empty()) skewed->of_own[5] = 0.5;
  options.preconditioning.multigrid.coordinates = skewed;
  std::string text = error_of(ErrorKind::input, [&] { Solver(*own.matrix, options); });
  EXPECT_NE(text.find("the axes of node 0 of this rank are not of length 1"), std::string::npos) << text;
  skewed->dimensions = 6;
  text = error_of(ErrorKind::usage, [&] { Solver(*own.matrix, options); });
  EXPECT_NE(text.find("3 and its three axes: 12 numbers, not 6"), std::string::npos) << text;
}

}  // namespace
}  // namespace shardmat
