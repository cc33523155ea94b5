// The stencils poisson7 and poisson27.
#include <array>
#include <map>
#include <utility>

#include "tests/partition/generators/matrix_checks.h"

namespace shardmat {
namespace {

using Step = std::array<std::int64_t, 3>;

/// The matrix of a stencil in a grid of nodes, each held by its neighbours outside.
struct Stencil {
  Step size;
  std::array<double, 3> edge{1, 1, 1};
  bool faces_only = false;  ///< 7 points instead of 27

  double weight(const Step& step) const {
    double steps = 0, distance = 0;
    for (std::size_t d = 0; d < 3; ++d)
      if (step[d] != 0) steps += 1, distance += edge[d] * edge[d];
    return steps == 0 || (faces_only && steps > 1) ? 0 : steps / distance;
  }
};

TEST(Stencil, UniformHasTheKnownNumbers) {
  for (const auto& [name, diagonal] : {std::pair{"poisson7", 6}, std::pair{"poisson27", 26}}) {
    const HostCsr m = generate(std::string(name) + ":nx=5,ny=4,nz=3,uniform");
    for (std::int64_t i = 0; i < m.rows; ++i)
      for (auto k = static_cast<std::size_t>(m.row_ptr[static_cast<std::size_t>(i)]);
           k < static_cast<std::size_t>(m.row_ptr[static_cast<std::size_t>(i) + 1]); ++k)
        EXPECT_EQ(m.values[k], m.col_idx[k] == i ? diagonal : -1) << name;
  }
  EXPECT_EQ(generate("poisson7:nx=5,ny=4,nz=6").nnz(), 5 * 4 * 6 + 2 * (4 * 4 * 6 + 5 * 3 * 6 + 5 * 4 * 5));
  const HostCsr m = generate("poisson7:nx=5,ny=4,nz=6");
  EXPECT_EQ(entry(m, 0, 20), m.values[3]);  // x, y, then z
}

/// Ranges of the couplings, and the row sums: those of inner rows are 0, others hold what the missing neighbours would
/// have without jitter.
void expect_row_sums(const std::string& specification, const Stencil& stencil, double stiffest) {
  SCOPED_TRACE(specification);
  const HostCsr m = generate(specification);
  const HostCsr plain = generate(specification + ",uniform");
  EXPECT_EQ(plain.col_idx, m.col_idx);
  std::int64_t inner = 0;
  std::map<double, int> kinds;  // stiffness of the nodes, from the surplus at the faces
  for (std::int64_t i = 0; i < m.rows; ++i) {
    const Step p = {i % stencil.size[0], i / stencil.size[0] % stencil.size[1], i / stencil.size[0] / stencil.size[1]};
    double missing = 0, sum = 0;
    for (std::int64_t k = 0; k < 27; ++k) {
      const Step step = {k % 3 - 1, k / 3 % 3 - 1, k / 9 - 1};
      bool outside = false;
      for (std::size_t d = 0; d < 3; ++d) outside = outside || p[d] + step[d] < 0 || p[d] + step[d] >= stencil.size[d];
      if (outside) missing += stencil.weight(step);
    }
    for (auto k = static_cast<std::size_t>(m.row_ptr[static_cast<std::size_t>(i)]);
         k < static_cast<std::size_t>(m.row_ptr[static_cast<std::size_t>(i) + 1]); ++k) {
      const std::int64_t j = m.col_idx[k];
      sum += m.values[k];
      EXPECT_EQ(m.values[k], entry(m, j, i));
      if (i == j) continue;
      EXPECT_LE(m.values[k], plain.values[k] * 0.9);
      EXPECT_GE(m.values[k], plain.values[k]);
      if (stiffest != 1) continue;
      const Step step = {j % stencil.size[0] - p[0], j / stencil.size[0] % stencil.size[1] - p[1],
                         j / stencil.size[0] / stencil.size[1] - p[2]};
      EXPECT_NEAR(plain.values[k], -stencil.weight(step), 1e-14);
    }
    const double rounding = 1e-14 * entry(m, i, i);
    if (missing == 0) {
      ++inner;
      EXPECT_NEAR(sum, 0, rounding);
    } else if (stiffest == 1) {
      EXPECT_NEAR(sum, missing, rounding);
    } else {
      EXPECT_TRUE(std::abs(sum - missing) <= rounding || std::abs(sum - missing * stiffest) <= rounding) << sum;
      ++kinds[sum > 2 * missing ? stiffest : 1];
    }
  }
  EXPECT_GT(inner, 0);
  if (stiffest != 1) {
    EXPECT_EQ(kinds.size(), 2u);
  }
  EXPECT_NE(m.values, plain.values);
}

TEST(Stencil, RowSumsAreZeroInsideAndTheCouplingsOfMissingNeighboursAtTheFaces) {
  expect_row_sums("poisson7:nx=5,ny=4,nz=6", {{5, 4, 6}, {1, 1, 1}, true}, 1);
  expect_row_sums("poisson27:nx=5,ny=4,nz=6", {{5, 4, 6}}, 1);
  expect_row_sums("poisson7:nx=5,ny=4,nz=6,stretch=1x0.1x20", {{5, 4, 6}, {1, 0.1, 20}, true}, 1);
  expect_row_sums("poisson27:nx=5,ny=4,nz=6,stretch=1x0.1x20", {{5, 4, 6}, {1, 0.1, 20}}, 1);
  expect_row_sums("poisson7:nx=13,ny=9,nz=10,inclusions=1000", {{13, 9, 10}, {1, 1, 1}, true}, 1000);
  expect_row_sums("poisson27:nx=13,ny=9,nz=10,inclusions=1000", {{13, 9, 10}}, 1000);
}

TEST(Stencil, InclusionsCoupleByTheHarmonicMean) {
  const HostCsr m = generate("poisson7:nx=64,ny=1,nz=1,uniform,inclusions=3,seed=4");
  int same = 0, soft = 0, hard = 0;
  for (std::int64_t i = 0; i + 1 < 64; ++i) {
    const double value = -entry(m, i, i + 1);
    same += value == 1;
    soft += std::abs(value - 1.5) < 1e-15;  // 2 · 3 / (3 + 1)
    hard += value == 3;
    if (i % 4 != 3) {
      EXPECT_TRUE(value == 1 || value == 3) << i;
    }
  }
  EXPECT_EQ(same + soft + hard, 63);
  EXPECT_GT(soft, 0);
  EXPECT_GT(hard, 0);
  EXPECT_GT(same, hard);
}

TEST(Stencil, ClampedNeighboursStayInTheDiagonal) {
  const HostCsr free = generate("poisson7:nx=9,ny=3,nz=3"), m = generate("poisson7:nx=9,ny=3,nz=3,clamp=0.1");
  for (std::int64_t i = 0; i < m.rows; ++i) EXPECT_EQ(entry(m, i, i), i % 9 == 0 ? 1 : entry(free, i, i));
}

}  // namespace
}  // namespace shardmat
