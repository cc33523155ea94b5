#include "runtime/solvers/eigen/symmetric_eigen.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shardmat {
namespace {

/// One matrix with the rotations that were applied to it: a = vᵀ·A·v, where the rows of `v` are kept as vectors.
struct Rotated {
  std::size_t n;
  std::vector<double> a, v;

  /// Makes a[p, q] zero. Returns false if it was negligible.
  bool rotate(std::size_t p, std::size_t q, double negligible) {
    const double apq = a[p * n + q];
    if (std::abs(apq) <= negligible) return false;
    const double tau = (a[q * n + q] - a[p * n + p]) / (2 * apq);
    const double t = std::copysign(1 / (std::abs(tau) + std::hypot(1.0, tau)), tau), c = 1 / std::hypot(1.0, t), s = t * c;
    for (std::size_t k = 0; k < n; ++k) {
      const double kp = a[p * n + k], kq = a[q * n + k];
      a[p * n + k] = c * kp - s * kq, a[q * n + k] = s * kp + c * kq;
    }
    for (std::size_t k = 0; k < n; ++k) {
      const double kp = a[k * n + p], kq = a[k * n + q];
      a[k * n + p] = c * kp - s * kq, a[k * n + q] = s * kp + c * kq;
    }
    a[p * n + q] = a[q * n + p] = 0;
    for (std::size_t k = 0; k < n; ++k) {
      const double kp = v[p * n + k], kq = v[q * n + k];
      v[p * n + k] = c * kp - s * kq, v[q * n + k] = s * kp + c * kq;
    }
    return true;
  }
};

}  // namespace

SymmetricEigen symmetric_eigen(std::vector<double> matrix, std::size_t n) {
  double largest = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) largest = std::max(largest, std::abs(matrix[i * n + j]));
  const double scale = largest > 0 ? largest : 1;  // rotations square entries
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) matrix[j * n + i] = matrix[i * n + j] /= scale;
  Rotated r{n, std::move(matrix), std::vector<double>(n * n)};
  for (std::size_t i = 0; i < n; ++i) r.v[i * n + i] = 1;
  constexpr double kNegligible = 1e-18;  // of the largest entry
  constexpr int kMostSweeps = 60;
  bool going = n > 1;
  for (int sweep = 0; sweep < kMostSweeps && going; ++sweep) {
    going = false;
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t q = p + 1; q < n; ++q)
        if (r.rotate(p, q, kNegligible)) going = true;
  }
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t i, std::size_t j) { return r.a[i * n + i] < r.a[j * n + j]; });
  SymmetricEigen result;
  result.vectors.reserve(n * n);
  for (const std::size_t i : order) {
    result.values.push_back(scale * r.a[i * n + i]);
    const auto row = r.v.begin() + static_cast<std::ptrdiff_t>(i * n);
    result.vectors.insert(result.vectors.end(), row, row + static_cast<std::ptrdiff_t>(n));
  }
  return result;
}

}  // namespace shardmat
