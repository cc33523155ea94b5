#include "runtime/solvers/eigen/block_basis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/base/error.h"
#include "runtime/context/context.h"

namespace shardmat::modes {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

constexpr double kEpsilon = 2.2e-16;

}  // namespace

Small gram_of_ranks(const Panels& a, const Panels& b, std::int64_t rows, Communicator& ranks) {
  Small sums = gram(a, b, rows);
  ranks.all_reduce(std::span<double>(sums.values), Reduction::sum);
  return sums;
}

SymmetricEigen eigen_of_ranks(const Small& matrix, std::int64_t n, Communicator& ranks) {
  SymmetricEigen result;
  result.values.assign(place(n), 0), result.vectors.assign(place(n * n), 0);
  ranks.run_agreed([&] {
    for (const double value : matrix.values)
      if (!std::isfinite(value))
        throw Error(ErrorKind::input,
                    "products with the matrices are not finite, or beyond the range of numbers whose squares can be formed; "
                    "scale the matrices so that their values are near 1");
    if (ranks.rank() != 0) return;
    std::vector<double> packed(place(n * n));
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j <= i; ++j) packed[place(i * n + j)] = (matrix(i, j) + matrix(j, i)) / 2;
    result = symmetric_eigen(std::move(packed), place(n));
  });
  if (ranks.size() == 1) return result;
  ranks.broadcast(std::span<double>(result.values));
  ranks.broadcast(std::span<double>(result.vectors));
  return result;
}

Small first_vectors(const SymmetricEigen& eigen, std::int64_t count, std::int64_t rows, std::int64_t columns) {
  const auto n = std::ssize(eigen.values);
  Small c(rows, columns);
  for (std::int64_t j = 0; j < count; ++j)
    for (std::int64_t i = 0; i < n; ++i) c(i, j) = eigen.vectors[place(j * n + i)];
  return c;
}

Orthonormal orthonormal(const Small& g, std::int64_t count, double rounding, Communicator& ranks) {
  std::vector<double> scale(place(count), 0);
  for (std::int64_t i = 0; i < count; ++i) scale[place(i)] = g(i, i) > 0 ? 1 / std::sqrt(g(i, i)) : 0;
  Small scaled(count, count);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t j = 0; j < count; ++j) scaled(i, j) = scale[place(i)] * g(i, j) * scale[place(j)];
  const SymmetricEigen found = eigen_of_ranks(scaled, count, ranks);
  std::vector<std::int64_t> kept;
  for (std::int64_t i = count - 1; i >= 0; --i)
    if (found.values[place(i)] > rounding) kept.push_back(i);
  Orthonormal result{Small(count, std::ssize(kept)), 1};
  for (std::int64_t k = 0; k < std::ssize(kept); ++k) {
    const double value = found.values[place(kept[place(k)])];
    result.worst = std::max(result.worst, 1 / value);
    for (std::int64_t i = 0; i < count; ++i)
      result.c(i, k) = scale[place(i)] * found.vectors[place(kept[place(k)] * count + i)] / std::sqrt(value);
  }
  return result;
}

std::int64_t orthonormalise(Pencil& pencil, const Panels& w, const Panels& mw, std::int64_t count, const Panels& q,
                            Small* factors) {
  Communicator& ranks = pencil.k().context().communicator();
  const std::int64_t rows = pencil.local_rows(), of_q = std::ssize(q) * kPanel, places = std::ssize(w) * kPanel;
  constexpr int kMostPasses = 5;
  if (factors != nullptr) {
    *factors = Small(of_q + places, places);
    for (std::int64_t i = 0; i < count; ++i) (*factors)(of_q + i, i) = 1;
  }
  for (int pass = 0; pass < kMostPasses && count > 0; ++pass) {
    pencil.multiply_m(w, mw);
    const Small all = gram_of_ranks(joined({q, w}), mw, rows, ranks);
    Small own(count, count);
    double lost = 1, largest = 0;
    std::int64_t negative = 0;
    for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(all(of_q + i, i)));
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t j = 0; j < count; ++j) {
        double sum = (all(of_q + i, j) + all(of_q + j, i)) / 2;
        if (i == j && sum < -1e-10 * largest) ++negative;
        const double before = sum;
        for (std::int64_t k = 0; k < of_q; ++k) sum -= all(k, i) * all(k, j);
        if (i == j) {
          if (sum <= 4 * kEpsilon * before) sum = 0;  // q spans it
          if (sum > 0) lost = std::max(lost, before / sum);
        }
        own(i, j) = sum;
      }
    ranks.run_agreed([&] {
      if (negative > 0)
        throw Error(ErrorKind::input,
                    "M is not positive definite: xᵀMx is below 0 for some x; is it the mass matrix, and are both halves of "
                    "it stored?",
                    "mass");
    });
    // Rounding of the sums hides what is smaller; the next pass sees it.
    const Orthonormal made = orthonormal(own, count, pass == 0 ? 1e-13 : 1e-10, ranks);
    const std::int64_t kept = made.c.columns;
    Small change(of_q + places, places);
    for (std::int64_t j = 0; j < kept; ++j) {
      for (std::int64_t i = 0; i < count; ++i) change(of_q + i, j) = made.c(i, j);
      for (std::int64_t k = 0; k < of_q; ++k) {
        double sum = 0;
        for (std::int64_t i = 0; i < count; ++i) sum += all(k, i) * made.c(i, j);
        change(k, j) = -sum;
      }
    }
    if (factors != nullptr) {
      // w before = q·all + (w after)·R with R = cᵀ·own, as c·cᵀ is the inverse of what `own` keeps.
      Small r(places, places), next = *factors;
      for (std::int64_t i = 0; i < kept; ++i)
        for (std::int64_t j = 0; j < count; ++j)
          for (std::int64_t k = 0; k < count; ++k) r(i, j) += made.c(k, i) * own(k, j);
      for (std::int64_t j = 0; j < places; ++j) {
        for (std::int64_t i = 0; i < of_q; ++i)
          for (std::int64_t k = 0; k < count; ++k) next(i, j) += all(i, k) * (*factors)(of_q + k, j);
        for (std::int64_t i = 0; i < places; ++i) {
          next(of_q + i, j) = 0;
          for (std::int64_t k = 0; k < count; ++k) next(of_q + i, j) += r(i, k) * (*factors)(of_q + k, j);
        }
      }
      *factors = std::move(next);
    }
    combine(joined({q, w}), change, w, rows);
    count = kept;
    if (kEpsilon * lost * made.worst < 1e-14) break;
  }
  pencil.multiply_m(w, mw);
  return count;
}

}  // namespace shardmat::modes
