#include "runtime/solvers/loop/symmetric_eigen.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace shardmat {
namespace {

/// A = qᵀ·T·q with a tridiagonal T.
struct Tridiagonal {
  std::vector<double> diagonal, below, q;
};

/// Householder's reflections from the last row on. Only the lower triangle of `a` is read.
Tridiagonal tridiagonal_of(std::vector<double> a, std::size_t n) {
  Tridiagonal t{std::vector<double>(n), std::vector<double>(n), std::vector<double>(n * n)};
  std::vector<double> factors(n), p(n);
  for (std::size_t i = n; i-- > 1;) {
    double* const v = a.data() + i * n;  // the reflection of row i works on entries 0 … i - 1
    double square = 0;
    for (std::size_t k = 0; k + 1 < i; ++k) square += v[k] * v[k];
    if (square == 0) {
      t.below[i] = v[i - 1], factors[i] = 0;
      continue;
    }
    const double length = std::sqrt(square + v[i - 1] * v[i - 1]), to = v[i - 1] > 0 ? -length : length;
    t.below[i] = to;
    v[i - 1] -= to;
    const double factor = factors[i] = 2 / (square + v[i - 1] * v[i - 1]);
    // A ← H·A·H with H = 1 − factor·v·vᵀ: A −= v·wᵀ + w·vᵀ.
    std::fill(p.begin(), p.begin() + static_cast<std::ptrdiff_t>(i), 0.0);
    for (std::size_t r = 0; r < i; ++r) {
      const double* const row = a.data() + r * n;
      double sum = row[r] * v[r];
      for (std::size_t c = 0; c < r; ++c) sum += row[c] * v[c], p[c] += row[c] * v[r];
      p[r] += sum;
    }
    double dot = 0;
    for (std::size_t k = 0; k < i; ++k) p[k] *= factor, dot += p[k] * v[k];
    for (std::size_t k = 0; k < i; ++k) p[k] -= factor / 2 * dot * v[k];
    for (std::size_t r = 0; r < i; ++r) {
      double* const row = a.data() + r * n;
      for (std::size_t c = 0; c <= r; ++c) row[c] -= v[r] * p[c] + p[r] * v[c];
    }
  }
  for (std::size_t i = 0; i < n; ++i) t.diagonal[i] = a[i * n + i], t.q[i * n + i] = 1;
  // q = H₁ … Hₙ₋₁, the first reflection being Hₙ₋₁.
  for (std::size_t i = 1; i < n; ++i) {
    if (factors[i] == 0) continue;
    const double* const v = a.data() + i * n;
    std::fill(p.begin(), p.begin() + static_cast<std::ptrdiff_t>(i), 0.0);
    for (std::size_t k = 0; k < i; ++k)
      for (std::size_t c = 0; c < i; ++c) p[c] += t.q[c * n + k] * v[k];
    for (std::size_t c = 0; c < i; ++c)
      for (std::size_t k = 0; k < i; ++k) t.q[c * n + k] -= factors[i] * p[c] * v[k];
  }
  return t;
}

/// Implicit QL iterations with Wilkinson's shift (Golub and Van Loan, 8.3.5, from below): rotates the rows of q.
void diagonalise(Tridiagonal& t, std::size_t n) {
  std::vector<double>&d = t.diagonal, e(n);
  for (std::size_t i = 1; i < n; ++i) e[i - 1] = t.below[i];
  constexpr int kMostIterations = 60;
  for (std::size_t l = 0; l < n; ++l)
    for (int iteration = 0; iteration < kMostIterations; ++iteration) {
      std::size_t m = l;
      while (m + 1 < n &&
             std::abs(e[m]) > std::numeric_limits<double>::epsilon() / 2 * (std::abs(d[m]) + std::abs(d[m + 1])))
        ++m;
      if (m == l) break;
      const double half = (d[l + 1] - d[l]) / (2 * e[l]), r = std::hypot(half, 1.0);
      double g = d[m] - d[l] + e[l] / (half + std::copysign(r, half)), s = 1, c = 1, p = 0;
      bool split = false;
      for (std::size_t i = m; i-- > l;) {
        const double f = s * e[i], b = c * e[i], length = std::hypot(f, g);
        e[i + 1] = length;
        if (length == 0) {
          d[i + 1] -= p, e[m] = 0, split = true;
          break;
        }
        s = f / length, c = g / length;
        g = d[i + 1] - p;
        const double turned = (d[i] - g) * s + 2 * c * b;
        p = s * turned;
        d[i + 1] = g + p, g = c * turned - b;
        double *const low = t.q.data() + i * n, *const high = low + n;
        for (std::size_t k = 0; k < n; ++k) {
          const double of_high = high[k], of_low = low[k];
          high[k] = s * of_low + c * of_high, low[k] = c * of_low - s * of_high;
        }
      }
      if (split) continue;
      d[l] -= p, e[l] = g, e[m] = 0;
    }
}

}  // namespace

SymmetricEigen symmetric_eigen(std::vector<double> matrix, std::size_t n) {
  double largest = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) largest = std::max(largest, std::abs(matrix[i * n + j]));
  const double scale = largest > 0 ? largest : 1;  // entries are squared
  for (double& value : matrix) value /= scale;
  Tridiagonal t = tridiagonal_of(std::move(matrix), n);
  diagonalise(t, n);
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return t.diagonal[i] < t.diagonal[j]; });
  SymmetricEigen result;
  result.vectors.reserve(n * n);
  for (const std::size_t i : order) {
    result.values.push_back(scale * t.diagonal[i]);
    const auto row = t.q.begin() + static_cast<std::ptrdiff_t>(i * n);
    result.vectors.insert(result.vectors.end(), row, row + static_cast<std::ptrdiff_t>(n));
  }
  return result;
}

}  // namespace shardmat
