#include "tests/partition/generators/matrix_checks.h"

namespace shardmat {
namespace {

/// Solves a tridiagonal system.
std::vector<double> solve_tridiagonal(const HostCsr& m, std::vector<double> b) {
  const std::int64_t n = m.rows;
  std::vector<double> diagonal(b.size());
  for (std::int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    diagonal[at] = entry(m, i, i);
    if (i == 0) continue;
    const double factor = entry(m, i, i - 1) / diagonal[at - 1];
    diagonal[at] -= factor * entry(m, i - 1, i);
    b[at] -= factor * b[at - 1];
  }
  for (std::int64_t i = n - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    if (i + 1 < n) b[at] -= entry(m, i, i + 1) * b[at + 1];
    b[at] /= diagonal[at];
  }
  return b;
}

std::string line(std::int64_t n, double peclet) {
  return "convection_diffusion:ny=1,nz=1,nx=" + std::to_string(n) + ",peclet=" + std::to_string(peclet);
}

TEST(ConvectionDiffusion, IsSoundOnAnyRows) {
  for (const char* specification :
       {"convection_diffusion:n=6", "convection_diffusion:nx=9,ny=7,nz=1,wind=rotating,peclet=1e6",
        "convection_diffusion:nx=1,ny=2,nz=30", "convection_diffusion:nx=5,ny=4,nz=6,wind=rotating",
        "convection_diffusion:n=5,peclet=0"})
    expect_sound(*make_generator(specification));
}

TEST(ConvectionDiffusion, IsAnMMatrixWithUpwindCouplings) {
  // Entries for the neighbours are -1 - peclet · the wind that blows from there.
  const double peclet = 25;
  for (const bool rotating : {false, true})
    for (const std::int64_t nz : {1, 5}) {
      const std::int64_t nx = 7, ny = 4;
      const HostCsr m = generate("convection_diffusion:nx=7,ny=4,nz=" + std::to_string(nz) + ",peclet=25" +
                                 (rotating ? ",wind=rotating" : ""));
      for (std::int64_t i = 0; i < m.rows; ++i) {
        const std::int64_t p[3] = {i % nx, i / nx % ny, i / nx / ny}, size[3] = {nx, ny, nz}, stride[3] = {1, nx, nx * ny};
        const double turning[3] = {-(static_cast<double>(p[1]) - 1.5) / 3, (static_cast<double>(p[0]) - 3) / 3, 0};
        double diagonal = 0;
        std::int64_t length = 1;
        for (int d = 0; d < 3; ++d) {
          if (size[d] == 1) continue;
          const double wind = rotating ? turning[d] : 1;
          const double below = -1 - peclet * std::max(wind, 0.0), above = -1 - peclet * std::max(-wind, 0.0);
          diagonal -= below + above;
          if (p[d] > 0) {
            EXPECT_NEAR(entry(m, i, i - stride[d]), below, 1e-12);
          }
          if (p[d] + 1 < size[d]) {
            EXPECT_NEAR(entry(m, i, i + stride[d]), above, 1e-12);
          }
          length += (p[d] > 0) + (p[d] + 1 < size[d]);
        }
        EXPECT_NEAR(entry(m, i, i), diagonal, 1e-12);
        EXPECT_EQ(m.row_ptr[static_cast<std::size_t>(i) + 1] - m.row_ptr[static_cast<std::size_t>(i)], length);
      }
      EXPECT_NE(entry(m, 0, 1), entry(m, 1, 0));
    }
}

TEST(ConvectionDiffusion, WithoutWindIsPoisson) {
  EXPECT_EQ(generate("convection_diffusion:nx=5,ny=4,nz=3,peclet=0").values,
            generate("poisson7:nx=5,ny=4,nz=3,uniform").values);
  expect_symmetric(generate("convection_diffusion:n=5,nz=1,peclet=0,wind=rotating"));
}

TEST(ConvectionDiffusion, HasTheExactSolutionOfItsBoundaryLayer) {
  // u = 0 on the left and 1 on the right of n nodes: u_j = (r^j - 1) / (r^(n+1) - 1) with r = 1 + peclet.
  const std::int64_t n = 12;
  const double r = 1.5;
  const HostCsr m = generate(line(n, 0.5));
  std::vector<double> b(static_cast<std::size_t>(n));
  b.back() = 1;  // the coupling to the right is -1
  const std::vector<double> u = solve_tridiagonal(m, b);
  for (std::size_t j = 0; j < u.size(); ++j)
    EXPECT_NEAR(u[j], (std::pow(r, static_cast<double>(j + 1)) - 1) / (std::pow(r, static_cast<double>(n + 1)) - 1), 1e-14);
}

/// Largest error of -u'' + velocity·u' = f on (0, 1) with u = sin(π·x), on n nodes.
double error_of(std::int64_t n, double velocity) {
  const double pi = std::acos(-1.0), h = 1 / static_cast<double>(n + 1);
  std::vector<double> b(static_cast<std::size_t>(n));
  const auto x = [&](std::size_t j) { return static_cast<double>(j + 1) * h; };
  for (std::size_t j = 0; j < b.size(); ++j)
    b[j] = h * h * (pi * pi * std::sin(pi * x(j)) + velocity * pi * std::cos(pi * x(j)));
  std::vector<double> u = solve_tridiagonal(generate(line(n, velocity * h)), b);
  for (std::size_t j = 0; j < u.size(); ++j) u[j] -= std::sin(pi * x(j));
  return largest(u);
}

TEST(ConvectionDiffusion, ConvergesToFirstOrderWithWindAndToSecondWithout) {
  EXPECT_NEAR(error_of(127, 10) / error_of(255, 10), 2, 0.1);
  EXPECT_NEAR(error_of(127, 0) / error_of(255, 0), 4, 0.1);
  EXPECT_LT(error_of(1023, 10), 0.02);
}

TEST(ConvectionDiffusion, PlacesItsNodes) {
  const auto source = make_generator("convection_diffusion:nx=3,ny=2,nz=1");
  ASSERT_EQ(source->placed_nodes(), 6);
  EXPECT_EQ(source->coordinates(4, 6), (HostVector<double>{1, 1, 0, 2, 1, 0}));
}

TEST(ConvectionDiffusion, RefusesWhatHasNoMeaning) {
  const auto error = [](const std::string& arguments) {
    return message_of(ErrorKind::usage, [&] { make_generator("convection_diffusion:" + arguments); });
  };
  expect_contains(error("n=1"), "one node has no neighbours");
  expect_contains(error("ny=1,wind=rotating"), "a rotating wind needs 2 nodes along x and y, not 40 and 1");
  expect_contains(error("wind=north"), "wind must be diagonal or rotating, not \"north\"");
  expect_contains(error("peclet=-1"), "peclet must be a number from 0 to 1000000000000, not \"-1\"");
}

}  // namespace
}  // namespace shardmat
