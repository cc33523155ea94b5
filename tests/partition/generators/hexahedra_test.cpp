// Finite elements on a grid, and what all matrices on grids have in common.
#include <array>

#include "partition/generators/elements.h"
#include "tests/partition/generators/matrix_checks.h"

namespace shardmat {
namespace {

using Point = std::array<double, 3>;

/// (3n - 2)³ couplings of n³ nodes.
std::int64_t couplings(std::int64_t n) { return (3 * n - 2) * (3 * n - 2) * (3 * n - 2); }

TEST(GridMatrices, AreSoundAndSymmetric) {
  for (const char* specification : {"poisson27:n=5",
                                    "poisson27:n=1",
                                    "poisson7:n=6",
                                    "poisson7:nx=9,ny=4,nz=1",
                                    "poisson7:n=5,clamp=0.3,uniform",
                                    "poisson27:nx=1,ny=7,nz=2,uniform",
                                    "poisson:n=5",
                                    "poisson:nx=2,ny=6,nz=4",
                                    "poisson:n=4,uniform",
                                    "elasticity:n=4",
                                    "elasticity:nx=3,ny=2,nz=9",
                                    "elasticity:n=3,uniform",
                                    "poisson27:n=4,clamp=0.4",
                                    "poisson:nz=8,n=3,clamp=0.2",
                                    "elasticity:ny=6,n=3,clamp=0.3,seed=7",
                                    "elasticity:n=3,clamp=1",
                                    "poisson:nx=1500,ny=2,nz=2",
                                    "elasticity:nx=9,ny=5,nz=6,inclusions=1e6,stretch=50,nu=0.4999",
                                    "elasticity:n=6,inclusions=0.01,stretch=2x1x3,uniform,clamp=0.1",
                                    "poisson:n=9,inclusions=1e12,stretch=1x0.01x1",
                                    "poisson7:n=9,inclusions=1e4,stretch=1x2x30,clamp=0.2",
                                    "poisson27:n=9,inclusions=1e4,stretch=100",
                                    "poisson27:nx=30,ny=6,nz=1,inclusions=1e-3,uniform"}) {
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

/// Motion `kind` of the nodes: 0 to 2 translations, 3 to 5 rotations, 6 to 8 shears.
std::vector<double> motion(const RowSource& source, std::size_t kind) {
  const HostVector<double> xyz = source.coordinates(0, source.placed_nodes());
  std::vector<double> u(xyz.size());
  const std::size_t c = kind % 3, d = (c + 1) % 3;
  for (std::size_t at = 0; at < u.size(); at += 3) {
    u[at + c] = kind < 3 ? 1 : -xyz[at + d];
    if (kind >= 3) u[at + d] = kind < 6 ? xyz[at + c] : -xyz[at + c];
  }
  return u;
}

TEST(Hexahedra, UniformElasticityAnnihilatesTheSixRigidMotions) {
  const auto source = make_generator("elasticity:n=5,uniform");
  const HostCsr m = all_rows(*source);
  for (std::size_t kind = 0; kind < 6; ++kind) EXPECT_LT(largest(multiply(m, motion(*source, kind))), 1e-13) << kind;
  for (std::size_t kind = 6; kind < 9; ++kind)
    EXPECT_GT(dot(motion(*source, kind), multiply(m, motion(*source, kind))), 1) << kind;
}

TEST(Hexahedra, HardElasticityAnnihilatesTheSixRigidMotions) {
  for (const char* specification :
       {"elasticity:n=6", "elasticity:nx=9,ny=5,nz=4,nu=0", "elasticity:n=6,nu=0.4999",
        "elasticity:n=9,inclusions=1e4,nu=0.49", "elasticity:n=9,inclusions=1e-4,uniform", "elasticity:n=5,stretch=100",
        "elasticity:nx=7,ny=6,nz=3,stretch=2x1x0.02,uniform", "elasticity:n=9,inclusions=1e6,stretch=0.1x1x10,nu=0.499"}) {
    const auto source = make_generator(specification);
    const HostCsr m = all_rows(*source);
    for (std::size_t kind = 0; kind < 9; ++kind) {
      const std::vector<double> u = motion(*source, kind), force = multiply(m, u);
      double most = 0;  // of the forces that cancel
      for (std::size_t i = 0; i < u.size(); ++i)
        for (auto k = static_cast<std::size_t>(m.row_ptr[i]); k < static_cast<std::size_t>(m.row_ptr[i + 1]); ++k)
          most = std::max(most, std::abs(m.values[k] * u[static_cast<std::size_t>(m.col_idx[k])]));
      if (kind < 6) {
        EXPECT_LT(largest(force), 1e-13 * most) << specification << " " << kind;
      } else {
        EXPECT_GT(largest(force), 1e-6 * most) << specification << " " << kind;
      }
    }
  }
}

TEST(Hexahedra, StretchGivesTheEnergyOfUniformStrain) {
  // u_x = x in a box of 2·3 x 4·1 x 5·0.5: (λ + 2μ) times the volume.
  const double nu = 0.49, lambda = nu / ((1 + nu) * (1 - 2 * nu)), mu = 1 / (2 * (1 + nu));
  const auto source = make_generator("elasticity:nx=4,ny=5,nz=6,stretch=2x1x0.5,uniform,nu=0.49");
  const HostVector<double> xyz = source->coordinates(0, source->placed_nodes());
  std::vector<double> u(xyz.size());
  for (std::size_t at = 0; at < u.size(); at += 3) u[at] = xyz[at];
  EXPECT_NEAR(dot(u, multiply(all_rows(*source), u)), (lambda + 2 * mu) * 6 * 4 * 2.5, 1e-10);
  EXPECT_EQ(generate("elasticity:n=3,stretch=5").values, generate("elasticity:n=3,stretch=1x1x5").values);
}

TEST(GridMatrices, SizeGivesTheLengthsOfTheBox) {
  const auto beam = make_generator("elasticity:size=1x1x50,n=3,uniform,clamp=0.01");
  EXPECT_EQ(beam->placed_nodes(), 3 * 3 * 101);
  const HostVector<double> xyz = beam->coordinates(0, beam->placed_nodes());
  EXPECT_EQ(std::vector<double>(xyz.end() - 3, xyz.end()), (std::vector<double>{1, 1, 50}));
  EXPECT_EQ(generate("elasticity:size=1x1x50,n=3,uniform,clamp=0.01").values,
            generate("elasticity:n=3,nz=101,stretch=0.5x0.5x0.5,uniform,clamp=0.01").values);
  EXPECT_EQ(generate("poisson:size=7,n=4").values, generate("poisson:size=1x1x7,n=4").values);
  // Lengths that are no multiples of the width keep their length: 2.3 / 0.5 is rounded to 5 elements.
  const auto plate = make_generator("mass:size=2.3x7x1,n=3");
  EXPECT_EQ(plate->placed_nodes(), 6 * 15 * 3);
  for (const char* name : {"mass:lumped,uniform,", "mass:uniform,"}) {
    const HostCsr m = generate(std::string(name) + "size=2.3x7x1,n=3");
    double sum = 0;
    for (const double value : m.values) sum += value;
    EXPECT_NEAR(sum, 3 * 2.3 * 7, 1e-10);
  }
  for (const auto& [specification, rows] : {std::pair{"poisson7:size=3x1x1,n=4", 10 * 4 * 4},
                                            {"poisson27:size=1x2x3,n=2", 2 * 3 * 4},
                                            {"poisson:size=0.1x5x5,n=2,clamp=0.1", 2 * 51 * 51},
                                            {"elasticity:size=1x3x2,n=3,inclusions=1e4", 3 * 3 * 7 * 5}}) {
    const auto source = make_generator(specification);
    EXPECT_EQ(source->rows(), rows) << specification;
    expect_sound(*source);
    expect_symmetric(all_rows(*source));
  }
}

TEST(Hexahedra, InclusionsAreBlocksOfElementsAsOftenAsEachThirdBlock) {
  // The entry between the ends of a long diagonal of an element comes from this element alone.
  const HostCsr plain = generate("poisson:nx=25,ny=33,nz=21,uniform"),
                hard = generate("poisson:nx=25,ny=33,nz=21,uniform,inclusions=1000"),
                other = generate("poisson:nx=25,ny=33,nz=21,uniform,inclusions=1000,seed=2");
  std::int64_t stiff = 0, blocks = 0, moved = 0;
  for (std::int64_t z = 0; z < 20; ++z)
    for (std::int64_t y = 0; y < 32; ++y)
      for (std::int64_t x = 0; x < 24; ++x) {
        const auto ratio = [&](const HostCsr& m, std::int64_t i, std::int64_t j, std::int64_t k) {
          const std::int64_t node = (k * 33 + j) * 25 + i, end = node + 33 * 25 + 25 + 1;
          return entry(m, node, end) / entry(plain, node, end);
        };
        const double own = ratio(hard, x, y, z);
        EXPECT_NEAR(own, ratio(hard, x / 4 * 4, y / 4 * 4, z / 4 * 4), 1e-9);
        EXPECT_TRUE(std::abs(own - 1) < 1e-12 || std::abs(own - 1000) < 1e-9) << own;
        if (x % 4 != 0 || y % 4 != 0 || z % 4 != 0) continue;
        ++blocks;
        stiff += own > 2;
        moved += (own > 2) != (ratio(other, x, y, z) > 2);
      }
  EXPECT_EQ(blocks, 6 * 8 * 5);
  EXPECT_NEAR(static_cast<double>(stiff) / static_cast<double>(blocks), 1.0 / 3, 0.1);  // three standard deviations
  EXPECT_GT(moved, blocks / 4);
}

TEST(GridMatrices, ClampHoldsTheLongestEdgeAfterStretching) {
  const auto clamped = [](const char* specification, std::int64_t node) {
    const auto source = make_generator(specification);
    const std::int64_t unknowns = source->rows() / source->placed_nodes();
    return source->row_lengths(node * unknowns, node * unknowns + 1)[0] == 1;
  };
  for (const std::string name : {"elasticity", "poisson", "poisson7", "poisson27"}) {
    EXPECT_TRUE(clamped((name + ":nx=6,ny=5,nz=4,clamp=0.01").c_str(), 6 * 5 * 3)) << name;  // x = 0, z = 3
    EXPECT_FALSE(clamped((name + ":nx=6,ny=5,nz=4,clamp=0.01").c_str(), 1)) << name;
    EXPECT_TRUE(clamped((name + ":nx=6,ny=5,nz=4,clamp=0.01,stretch=2").c_str(), 1)) << name;
    EXPECT_FALSE(clamped((name + ":nx=6,ny=5,nz=4,clamp=0.01,stretch=2").c_str(), 6 * 5 * 3)) << name;
  }
}

TEST(GridMatrices, PlaceTheirNodes) {
  for (const std::string name : {"elasticity", "poisson", "poisson7", "poisson27"}) {
    const auto source = make_generator(name + ":nx=3,ny=4,nz=2,stretch=0.5x3x100,uniform");
    ASSERT_EQ(source->placed_nodes(), 24) << name;
    const HostVector<double> xyz = source->coordinates(7, 9);  // nodes (1, 2, 0) and (2, 2, 0)
    EXPECT_EQ(xyz, (HostVector<double>{0.5, 6, 0, 1, 6, 0})) << name;
    EXPECT_EQ(source->coordinates(23, 24), (HostVector<double>{1, 9, 100})) << name;
  }
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

}  // namespace
}  // namespace shardmat
