#include "partition/generators/binomial.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace shardmat {
namespace {

double log_mass(std::int64_t n, double p, std::int64_t k) {
  const auto x = static_cast<double>(n), y = static_cast<double>(k);
  return std::lgamma(x + 1) - std::lgamma(y + 1) - std::lgamma(x - y + 1) + y * std::log(p) + (x - y) * std::log1p(-p);
}

TEST(Binomial, EdgeCases) {
  const CounterRandom random(1, 0);
  EXPECT_EQ(binomial(0, 0.5, random), 0);
  EXPECT_EQ(binomial(100, 0, random), 0);
  EXPECT_EQ(binomial(100, 1, random), 100);
  for (std::int64_t i = 0; i < 1000; ++i) {
    const std::int64_t one = binomial(1, 0.3, random.of(i));
    EXPECT_TRUE(one == 0 || one == 1);
  }
}

TEST(Binomial, ChiSquareAgainstTheExactDistribution) {
  struct Case {
    std::int64_t n;
    double p;
  };
  for (const auto& [n, p] : {Case{5, 0.3}, Case{30, 0.24}, Case{1000, 0.004}, Case{50, 0.4}, Case{200, 0.76},
                             Case{4000, 0.5}, Case{100000, 0.76}}) {
    const std::int64_t draws = 100000;
    std::vector<std::int64_t> seen(static_cast<std::size_t>(n + 1));
    for (std::int64_t i = 0; i < draws; ++i) ++seen[static_cast<std::size_t>(binomial(n, p, CounterRandom(7, 3).of(i)))];
    // Neighbouring values joined until each class expects 20 draws.
    double chi_square = 0, classes = 0, expected = 0, observed = 0;
    for (std::int64_t k = 0; k <= n; ++k) {
      expected += static_cast<double>(draws) * std::exp(log_mass(n, p, k));
      observed += static_cast<double>(seen[static_cast<std::size_t>(k)]);
      if (expected < 20) continue;
      chi_square += (observed - expected) * (observed - expected) / expected;
      classes += 1;
      expected = observed = 0;
    }
    EXPECT_LT(chi_square, classes + 4 * std::sqrt(2 * classes) + 5) << n << " trials of " << p;
  }
}

TEST(Binomial, HugeNumbersHaveTheRightSpread) {
  const std::int64_t n = std::int64_t{1} << 44;
  const double mean = 0.76 * static_cast<double>(n), deviation = std::sqrt(mean * 0.24);
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < 10000; ++i) {
    const double z = (static_cast<double>(binomial(n, 0.76, CounterRandom(5, 1).of(i))) - mean) / deviation;
    sum += z;
    squares += z * z;
  }
  EXPECT_NEAR(sum / 10000, 0, 0.04);
  EXPECT_NEAR(squares / 10000, 1, 0.06);
}

TEST(CounterRandom, IsUniformAndIndependentOfOrder) {
  const CounterRandom random(42, 1);
  double sum = 0;
  std::vector<int> bins(16);
  for (std::int64_t i = 0; i < 160000; ++i) {
    const double u = random.of(i % 400).unit(i / 400);
    ASSERT_TRUE(u >= 0 && u < 1);
    sum += u;
    ++bins[static_cast<std::size_t>(random.below(16, i))];
  }
  EXPECT_NEAR(sum / 160000, 0.5, 0.003);
  for (const int count : bins) EXPECT_NEAR(count, 10000, 500);
}

TEST(CounterRandom, KeepsItsNumbersForEver) {
  // Matrices named by a specification must stay what they are.
  EXPECT_EQ(CounterRandom(1, 0).bits(0), 0x6ec85f1f8547bc0cu);
  EXPECT_EQ(CounterRandom(2, 3).of(4).bits(5), 0x3d7a8c74d05f4b04u);
}

}  // namespace
}  // namespace shardmat
