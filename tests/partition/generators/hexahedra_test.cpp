// The stencil and the finite elements on a grid.
#include <array>

#include "partition/generators/elements.h"
#include "tests/partition/generators/matrix_checks.h"

namespace shardmat {
namespace {

using Point = std::array<double, 3>;

/// (3n - 2)³ couplings of n³ nodes.
std::int64_t couplings(std::int64_t n) { return (3 * n - 2) * (3 * n - 2) * (3 * n - 2); }

TEST(GridMatrices, AreSoundAndSymmetric) {
  for (const char* specification :
       {"poisson27:n=5", "poisson27:n=1", "poisson7:n=6", "poisson7:nx=9,ny=4,nz=1", "poisson7:n=5,clamp=0.3,uniform",
        "poisson27:nx=1,ny=7,nz=2,uniform", "poisson:n=5", "poisson:nx=2,ny=6,nz=4", "poisson:n=4,uniform", "elasticity:n=4",
        "elasticity:nx=3,ny=2,nz=9", "elasticity:n=3,uniform", "poisson27:n=4,clamp=0.4", "poisson:nz=8,n=3,clamp=0.2",
        "elasticity:ny=6,n=3,clamp=0.3,seed=7", "elasticity:n=3,clamp=1", "poisson:nx=1500,ny=2,nz=2"}) {
    const auto source = make_generator(specification);
    expect_sound(*source);
    expect_symmetric(all_rows(*source));
  }
}

TEST(GridMatrices, HaveTheSizesOfTheirFormulas) {
  EXPECT_EQ(generate("poisson27:n=6").nnz(), couplings(6));
  EXPECT_EQ(generate("poisson:n=6").nnz(), couplings(6));
  EXPECT_EQ(generate("elasticity:n=6").nnz(), 9 * couplings(6));
  const auto large = make_generator("elasticity:n=100");
  EXPECT_EQ(large->rows(), 3'000'000);
  std::int64_t nnz = 0;
  for (const std::int64_t length : large->row_lengths(0, large->rows())) nnz += length;
  EXPECT_EQ(nnz, 9 * couplings(100));
}

TEST(GridMatrices, RowsOfAMatrixThatNoHostHolds) {
  const auto source = make_generator("elasticity:n=100000");
  EXPECT_EQ(source->rows(), 3'000'000'000'000'000);
  const std::int64_t middle = source->rows() / 2 + 1;
  const HostCsr rows = source->read_rows(middle, middle + 2);
  validate(rows.view());
  EXPECT_GT(rows.col_idx.back(), middle);
}

TEST(GridMatrices, SeedAndUniformDecideTheValues) {
  EXPECT_EQ(generate("elasticity:n=3").values, generate("elasticity:n=3,seed=1").values);
  for (const char* name : {"poisson27", "poisson", "elasticity"}) {
    const std::string base = std::string(name) + ":n=5";
    EXPECT_NE(generate(base).values, generate(base + ",seed=2").values);
    EXPECT_EQ(generate(base + ",uniform").values, generate(base + ",uniform,seed=2").values);
    HostVector<double> values = generate(base).values;
    std::sort(values.begin(), values.end());
    const auto distinct = std::unique(values.begin(), values.end()) - values.begin();
    // A pair of nodes has its values once; blocks of elasticity are nearly symmetric by themselves.
    EXPECT_GT(distinct, static_cast<std::int64_t>(values.size()) * 45 / 100) << name;
  }
}

TEST(GridMatrices, ClampMakesIdentityRowsAndColumns) {
  const HostCsr free = generate("elasticity:nx=3,ny=6,nz=2,seed=3");
  const HostCsr m = generate("elasticity:nx=3,ny=6,nz=2,seed=3,clamp=0.2");
  const auto clamped = [](std::int64_t row) { return row / 3 / 3 % 6 <= 1; };  // y = 0 and y = 1 = 0.2 · 5
  for (std::int64_t i = 0; i < m.rows; ++i)
    for (std::int64_t j = 0; j < m.cols; ++j)
      ASSERT_EQ(entry(m, i, j), clamped(i) || clamped(j) ? (i == j ? 1 : 0) : entry(free, i, j));
  for (std::int64_t i = 0; i < m.rows; ++i)
    if (clamped(i)) {
      EXPECT_EQ(m.row_ptr[static_cast<std::size_t>(i) + 1] - m.row_ptr[static_cast<std::size_t>(i)], 1);
    }
}

TEST(Stencil, HasItsNumbers) {
  const HostCsr uniform = generate("poisson27:n=4,uniform");
  const HostCsr m = generate("poisson27:n=4");
  for (std::int64_t i = 0; i < m.rows; ++i)
    for (std::int64_t j = 0; j < m.cols; ++j) {
      if (entry(uniform, i, j) == 0) continue;
      EXPECT_EQ(entry(uniform, i, j), i == j ? 26 : -1);
      EXPECT_GE(entry(m, i, j), i == j ? 26 : -1);
      EXPECT_LE(entry(m, i, j), i == j ? 28.6 : -0.9);
    }
}

TEST(Hexahedra, PoissonAnnihilatesConstantsOnly) {
  for (const char* specification : {"poisson:n=7", "poisson:n=7,uniform"}) {
    const HostCsr m = generate(specification);
    std::vector<double> x(static_cast<std::size_t>(m.rows), 1);
    EXPECT_LT(largest(multiply(m, x)), 1e-13);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i));
    EXPECT_GT(dot(x, multiply(m, x)), 1);
  }
}

TEST(Hexahedra, UniformPoissonHasTheKnownEntries) {
  // The unit cube's element matrix: 1/3 on the diagonal, 0 along edges, -1/12 across faces and through the
  // middle.
  const HostCsr m = generate("poisson:n=2,uniform");
  const double by_distance[] = {1.0 / 3, 0, -1.0 / 12, -1.0 / 12};
  for (int a = 0; a < 8; ++a)
    for (int b = 0; b < 8; ++b) {
      const int bits = a ^ b;
      EXPECT_NEAR(entry(m, a, b), by_distance[(bits & 1) + (bits >> 1 & 1) + (bits >> 2)], 1e-15);
    }
  EXPECT_EQ(m.nnz(), 64);  // exact zeros stay in the pattern
}

TEST(Hexahedra, UniformElasticityHasTheKnownEntries) {
  // Integrals over the unit cube in closed form: (λ + 2μ)/9 + 2μ/9 on the diagonal and (λ + μ)/12 between
  // components.
  const double young = 2.6, nu = 0.3, lambda = young * nu / ((1 + nu) * (1 - 2 * nu)), mu = young / (2 * (1 + nu));
  const HostCsr m = generate("elasticity:n=2,uniform,E=2.6,nu=0.3");
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(entry(m, i, i), (lambda + 2 * mu) / 9 + 2 * mu / 9, 1e-14);
    EXPECT_NEAR(entry(m, i, (i + 1) % 3), (lambda + mu) / 12, 1e-14);
  }
}

TEST(Hexahedra, UniformElasticityAnnihilatesTheSixRigidMotions) {
  const std::int64_t n = 5;
  const HostCsr m = generate("elasticity:n=5,uniform");
  const auto motion = [&](int kind) {
    std::vector<double> u(static_cast<std::size_t>(m.rows));
    for (std::int64_t node = 0; node < n * n * n; ++node) {
      const Point p = {static_cast<double>(node % n), static_cast<double>(node / n % n), static_cast<double>(node / n / n)};
      const std::size_t c = static_cast<std::size_t>(kind % 3), d = (c + 1) % 3;
      const auto at = static_cast<std::size_t>(3 * node);
      if (kind < 3) u[at + c] = 1;
      if (kind >= 3) u[at + c] = -p[d], u[at + d] = p[c];
      if (kind >= 6) u[at + d] = -p[c];
    }
    return u;
  };
  for (int kind = 0; kind < 6; ++kind) EXPECT_LT(largest(multiply(m, motion(kind))), 1e-13) << kind;
  for (int kind = 6; kind < 9; ++kind) EXPECT_GT(dot(motion(kind), multiply(m, motion(kind))), 1) << kind;
}

TEST(Hexahedra, JitteredElasticityAnnihilatesTranslations) {
  const HostCsr m = generate("elasticity:n=6");
  for (std::size_t c = 0; c < 3; ++c) {
    std::vector<double> u(static_cast<std::size_t>(m.rows));
    for (std::size_t i = c; i < u.size(); i += 3) u[i] = 1;
    EXPECT_LT(largest(multiply(m, u)), 1e-13);
  }
}

/// Corners of a distorted hexahedron: column d of the result is x[d].
void distort(double (&x)[3][8]) {
  for (int b = 0; b < 8; ++b) {
    const Point unit = {static_cast<double>(b & 1), static_cast<double>(b >> 1 & 1), static_cast<double>(b >> 2)};
    x[0][b] = 1.5 * unit[0] + 0.2 * unit[1] * unit[2] + 0.1 * unit[2];
    x[1][b] = unit[1] - 0.1 * unit[0] + 0.15 * unit[0] * unit[1];
    x[2][b] = 0.8 * unit[2] + 0.1 * unit[0] * unit[1] * unit[2];
  }
}

TEST(Hexahedra, GradientsReproduceLinearFieldsOnADistortedElement) {
  double x[3][8];
  distort(x);
  Hex8Gradients gradients;
  compute_gradients(x, gradients);
  for (int p = 0; p < 8; ++p) {
    double sum[3][3] = {};  // of x_d at the nodes times ∂N/∂x_i: the identity times sqrt(weight)
    for (int i = 0; i < 3; ++i)
      for (int d = 0; d < 3; ++d)
        for (int b = 0; b < 8; ++b) sum[i][d] += gradients.at[p][i][b] * x[d][b];
    for (int i = 0; i < 3; ++i)
      for (int d = 0; d < 3; ++d) EXPECT_NEAR(sum[i][d], i == d ? sum[0][0] : 0, 1e-14);
  }
}

TEST(Hexahedra, DistortedElementHasNoForceUnderRotationAndTheRightEnergyUnderStretch) {
  double x[3][8];
  distort(x);
  Hex8Gradients gradients;
  compute_gradients(x, gradients);
  const Elasticity physics(1, 0.25);
  double volume = 0;
  for (int p = 0; p < 8; ++p) {
    double root = 0;
    for (int b = 0; b < 8; ++b) root += gradients.at[p][0][b] * x[0][b];
    volume += root * root;
  }
  double energy = 0;
  for (int a = 0; a < 8; ++a) {
    double row[9][8];
    physics.element_row(gradients, a, 2, row);
    for (int i = 0; i < 3; ++i) {
      double force = 0;
      for (int b = 0; b < 8; ++b) force += row[3 * i][b] * -x[1][b] + row[3 * i + 1][b] * x[0][b];
      EXPECT_NEAR(force, 0, 1e-14);
      for (int b = 0; b < 8; ++b) energy += (i == 0 ? x[0][a] : 0) * row[3 * i][b] * x[0][b];
    }
  }
  EXPECT_NEAR(energy, 2 * (physics.lambda + 2 * physics.mu) * volume, 1e-13);
}

TEST(Poisson7, IsSymmetricAndDominantWithSevenPoints) {
  const HostCsr m = generate("poisson7:nx=5,ny=4,nz=6"), uniform = generate("poisson7:nx=5,ny=4,nz=6,uniform");
  EXPECT_EQ(m.nnz(), 5 * 4 * 6 + 2 * (4 * 4 * 6 + 5 * 3 * 6 + 5 * 4 * 5));
  EXPECT_EQ(uniform.col_idx, m.col_idx);
  for (std::int64_t i = 0; i < m.rows; ++i) {
    double others = 0;
    for (auto k = static_cast<std::size_t>(m.row_ptr[static_cast<std::size_t>(i)]);
         k < static_cast<std::size_t>(m.row_ptr[static_cast<std::size_t>(i) + 1]); ++k) {
      const std::int64_t j = m.col_idx[k];
      EXPECT_EQ(m.values[k], entry(m, j, i));
      EXPECT_EQ(uniform.values[k], i == j ? 6 : -1);
      if (i != j) others -= m.values[k];
    }
    EXPECT_GE(entry(m, i, i), others);
  }
  EXPECT_EQ(entry(m, 0, 20), m.values[3]);  // x, y, then z
}

}  // namespace
}  // namespace shardmat
