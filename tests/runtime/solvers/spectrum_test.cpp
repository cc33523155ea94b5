#include "runtime/solvers/loop/spectrum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "runtime/solvers/loop/preconditioner.h"
#include "tests/runtime/matrix/test_matrix.h"

namespace shardmat {
namespace {

TEST(Spectrum, OfTheSecondDifference) {
  constexpr int kRows = 30;
  const std::vector<double> found =
      tridiagonal_eigenvalues(std::vector<double>(kRows, 2), std::vector<double>(kRows - 1, -1));
  for (int i = 0; i < kRows; ++i)
    EXPECT_NEAR(found[static_cast<std::size_t>(i)], 2 - 2 * std::cos((i + 1) * std::numbers::pi / (kRows + 1)), 1e-13);
  EXPECT_NEAR(tridiagonal_eigenvalues({3}, {}).at(0), 3, 1e-14);
  EXPECT_TRUE(tridiagonal_eigenvalues({}, {}).empty());
}

TEST(Spectrum, IsEstimatedFromInside) {
  test::TestMatrix poisson(kHost64, "poisson7:n=12", LocalSort::none);
  const auto identity = make_no_preconditioner(poisson.matrix, {});
  const auto product = poisson.matrix.product();
  const Spectrum found = estimate_spectrum(*product, *identity, 60, "solver", poisson.context.stream());
  constexpr double kLeast = 0.16823804, kLargest = 11.24470710;  // numpy.linalg.eigvalsh
  EXPECT_NEAR(found.least, kLeast, 1e-6);
  EXPECT_NEAR(found.largest, kLargest, 1e-6);
}

TEST(Unknowns, AreFoundFromThePattern) {
  const auto found = [](const char* specification) {
    return block_jacobi_size(test::TestMatrix(kHost64, specification, LocalSort::none).matrix);
  };
  EXPECT_EQ(found("poisson27:n=9"), 1);
  EXPECT_EQ(found("elasticity:n=5"), 3);
  EXPECT_EQ(found("elasticity:n=8,clamp=0.1"), 3);
}

}  // namespace
}  // namespace shardmat
