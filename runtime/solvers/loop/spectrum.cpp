#include "runtime/solvers/loop/spectrum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/vector_operations.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/loop/random_entries.h"

namespace shardmat {
namespace {

/// How many eigenvalues are below `value` (Sturm's sequence).
std::size_t count_below(const std::vector<double>& diagonal, const std::vector<double>& beside, double value) {
  std::size_t count = 0;
  double pivot = 1;
  for (std::size_t i = 0; i < diagonal.size(); ++i) {
    const double square = i == 0 ? 0 : beside[i - 1] * beside[i - 1];
    pivot = diagonal[i] - value - (square == 0 ? 0 : square / pivot);
    if (pivot == 0) pivot = -1e-300;
    if (pivot < 0) ++count;
  }
  return count;
}

/// Gershgorin's bound of the magnitudes of eigenvalues.
double bound_of(const std::vector<double>& diagonal, const std::vector<double>& beside) {
  double bound = 0;
  for (std::size_t i = 0; i < diagonal.size(); ++i) {
    const double left = i == 0 ? 0 : std::abs(beside[i - 1]), right = i + 1 < diagonal.size() ? std::abs(beside[i]) : 0;
    bound = std::max(bound, std::abs(diagonal[i]) + left + right);
  }
  return bound;
}

/// Eigenvalue `i`, from 0, in ascending order, by bisection.
double eigenvalue(const std::vector<double>& diagonal, const std::vector<double>& beside, std::size_t i, double bound) {
  double low = -bound, high = bound;
  constexpr int kMostHalvings = 200;
  for (int halving = 0; halving < kMostHalvings && high - low > 4e-16 * bound; ++halving) {
    const double middle = (low + high) / 2;
    (count_below(diagonal, beside, middle) > i ? high : low) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

std::vector<double> tridiagonal_eigenvalues(const std::vector<double>& diagonal, const std::vector<double>& beside) {
  const double bound = bound_of(diagonal, beside);
  std::vector<double> values;
  for (std::size_t i = 0; i < diagonal.size(); ++i) values.push_back(eigenvalue(diagonal, beside, i, bound));
  return values;
}

void RitzValues::begin_anew() {
  if (matrices_.empty() || !matrices_.back().diagonal.empty()) matrices_.emplace_back();
}

void RitzValues::add(double alpha, double beta) {
  constexpr std::size_t kMost = 100'000;
  if (added_ == kMost || !(alpha > 0 && std::isfinite(alpha) && beta >= 0 && std::isfinite(beta))) return;
  ++added_;
  if (matrices_.empty()) begin_anew();
  Tridiagonal& t = matrices_.back();
  if (t.diagonal.empty()) {
    t.diagonal.push_back(1 / alpha);
  } else {
    t.beside.push_back(std::sqrt(beta_before_) / alpha_before_);
    t.diagonal.push_back(1 / alpha + beta_before_ / alpha_before_);
  }
  alpha_before_ = alpha, beta_before_ = beta;
}

std::optional<Spectrum> RitzValues::extremes() const {
  std::optional<Spectrum> all;
  for (const Tridiagonal& t : matrices_) {
    if (t.diagonal.size() < 2) continue;
    const double bound = bound_of(t.diagonal, t.beside), least = eigenvalue(t.diagonal, t.beside, 0, bound),
                 largest = eigenvalue(t.diagonal, t.beside, t.diagonal.size() - 1, bound);
    if (!all) all = Spectrum{least, largest};
    all->least = std::min(all->least, least);
    all->largest = std::max(all->largest, largest);
  }
  return all;
}

Spectrum estimate_spectrum(const SpectrumParts& parts, int steps, std::string_view setting, Stream& stream) {
  if (parts.rows->size() == 0) return {1, 1};
  Context& context = parts.rows->context();
  const ValueType type = parts.type;
  const std::int64_t columns = parts.columns;
  const auto vector = [&] { return DistributedVector(parts.rows, type, columns); };
  DistributedVector r = vector(), z = vector(), p = vector(), q = vector();
  VectorSums sums(context, columns);
  Buffer on_device;
  context.communicator().run_agreed(
      [&] { on_device = Buffer(context.device(), static_cast<std::size_t>(columns) * sizeof(double)); });
  const auto dot = [&](const DistributedVector& a, const DistributedVector& b) {
    sums.dot(a, b, on_device.as<double>(), stream);
    parts.wait();
    double value = 0;  // all columns are alike
    copy_to_host(&value, on_device.data(), sizeof value, stream);
    return value;
  };
  const auto require_positive = [&](double value, const char* what) {
    context.communicator().run_agreed([&] {
      if (!(value > 0))
        throw Error(ErrorKind::usage,
                    fmt::format("{} is not positive definite, so its eigenvalues cannot be bounded as {} needs it. Take "
                                "another {}, as {}",
                                what, setting == "solver" ? "chebyshev" : "this preconditioner", setting,
                                setting == "solver" ? "gmres" : "jacobi"),
                    std::string(setting));
    });
  };
  fill_random(r, 11, Entries::fractions, stream);
  parts.project(r.view());
  parts.precondition(r.view(), z.view());
  copy(z, p, stream);
  std::vector<double> diagonal, beside;
  double rz = dot(r, z), beta = 0, alpha_before = 1;
  require_positive(rz, "the preconditioner");
  const double noise = type == ValueType::f64 ? 1e-13 : 1e-5;
  double largest = 0;
  const double least = (type == ValueType::f64 ? 1e-24 : 1e-10) * rz;  // below it, rounding errors are left
  for (int i = 0; i < steps && i < parts.rows->size() && rz > least; ++i) {
    parts.multiply(p.view(), q.view());
    const double pq = dot(p, q);
    const double quotient = pq / dot(p, p);  // of Rayleigh
    largest = std::max(largest, quotient);
    if (std::abs(quotient) < noise * largest) break;  // what is left lies in the null space
    require_positive(pq, "the matrix");
    const double alpha = rz / pq;
    diagonal.push_back(1 / alpha + (i == 0 ? 0 : beta / alpha_before));
    axpy({-alpha}, q, r, stream);
    parts.precondition(r.view(), z.view());
    const double next = dot(r, z);
    beta = next / rz;
    beside.push_back(std::sqrt(std::max(0.0, beta)) / alpha);
    alpha_before = alpha;
    rz = next;
    xpay(z, {beta}, p, stream);
  }
  if (diagonal.empty()) return {1, 1};  // no rows
  const std::vector<double> values = tridiagonal_eigenvalues(diagonal, beside);
  return {values.front(), values.back()};
}

Spectrum estimate_spectrum(const Product& product, const Preconditioner& preconditioner, int steps, std::string_view setting,
                           Stream& stream) {
  SpectrumParts parts;
  parts.rows = product.matrix().y_rows();
  parts.type = sum_type(product.matrix().type());
  parts.columns = product.columns();
  parts.multiply = [&](const Dense& x, const Dense& y) { product.multiply(1, x, 0, y, stream); };
  parts.precondition = [&](const Dense& r, const Dense& z) { preconditioner.apply(r, z, stream); };
  parts.project = [&](const Dense& r) {
    preconditioner.project(r, stream);
    product.clear_held(r, stream);
  };
  parts.wait = [&] { product.wait(stream); };
  return estimate_spectrum(parts, steps, setting, stream);
}

}  // namespace shardmat
