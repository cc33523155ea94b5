#include "partition/generators/binomial.h"

#include <cmath>

namespace shardmat {
namespace {

constexpr double kSmallMean = 10;

/// Natural logarithm of x > 0, normal: x = m · 2^e with m in [√½, √2), then log m = 2 artanh((m - 1) / (m +
/// 1)).
double logarithm(double x) {
  constexpr double kSqrtHalf = 0.70710678118654752440, kLog2 = 0.69314718055994530942;
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < kSqrtHalf) m *= 2, --exponent;
  const double s = (m - 1) / (m + 1), square = s * s;
  double series = 0;
  for (int k = 23; k >= 1; k -= 2) series = series * square + 1.0 / k;
  return exponent * kLog2 + 2 * s * series;
}

/// log k! less Stirling's (k + ½) log(k + 1) - (k + 1) + ½ log 2π.
double stirling_remainder(double k) {
  static constexpr double kSmall[] = {0.08106146679532726,  0.04134069595540929, 0.02767792568499834, 0.02079067210376509,
                                      0.01664469118982119,  0.01387612882307075, 0.01189670994589177, 0.01041126526197209,
                                      0.009255462182712733, 0.008330563433362871};
  if (k < 10) return kSmall[static_cast<int>(k)];
  const double inverse = 1 / (k + 1), square = inverse * inverse;
  return (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - square / 1680) * square) * square) * inverse;
}

double integer_power(double base, std::int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base)
    if ((exponent & 1) != 0) result *= base;
  return result;
}

/// probability ≤ ½ and a small mean: walks up the distribution from 0.
std::int64_t by_inversion(std::int64_t trials, double probability, const CounterRandom& random) {
  const double odds = probability / (1 - probability);
  double mass = integer_power(1 - probability, trials);
  double left = random.unit(0);
  std::int64_t k = 0;
  while (left >= mass && k < trials) {
    left -= mass;
    ++k;
    mass *= odds * static_cast<double>(trials - k + 1) / static_cast<double>(k);
    if (mass < 1e-300) break;  // the numbers' 53 bits end long before
  }
  return k;
}

/// probability ≤ ½ and a mean of at least 10.
std::int64_t by_rejection(std::int64_t trials, double probability, const CounterRandom& random) {
  const double n = static_cast<double>(trials), p = probability;
  const double deviation = std::sqrt(n * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p, c = n * p + 0.5;
  const double alpha = (2.83 + 5.1 / b) * deviation, v_r = 0.92 - 4.2 / b;
  const double mode = std::floor((n + 1) * p);
  for (std::int64_t draw = 0;; draw += 2) {
    const double u = random.unit(draw) - 0.5;
    double v = random.unit(draw + 1);
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= v_r) return static_cast<std::int64_t>(k);
    if (!(k >= 0 && k <= n) || v == 0) continue;
    v = logarithm(v * alpha / (a / (us * us) + b));
    const double bound = (mode + 0.5) * logarithm((mode + 1) / (p / (1 - p) * (n - mode + 1))) +
                         (n + 1) * logarithm((n - mode + 1) / (n - k + 1)) +
                         (k + 0.5) * logarithm(p / (1 - p) * (n - k + 1) / (k + 1)) + stirling_remainder(mode) +
                         stirling_remainder(n - mode) - stirling_remainder(k) - stirling_remainder(n - k);
    if (v <= bound) return static_cast<std::int64_t>(k);
  }
}

}  // namespace

std::int64_t binomial(std::int64_t trials, double probability, const CounterRandom& random) {
  if (trials == 0 || probability <= 0) return 0;
  if (probability >= 1) return trials;
  if (probability > 0.5) return trials - binomial(trials, 1 - probability, random);
  const bool small = static_cast<double>(trials) * probability < kSmallMean;
  return small ? by_inversion(trials, probability, random) : by_rejection(trials, probability, random);
}

}  // namespace shardmat
