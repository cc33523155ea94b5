#include "runtime/solvers/loop/spectrum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "kernels/vector.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/loop/first_column_dot.h"
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

Spectrum singular_values(const UpperTriangle& r) {
  // 20 million operations at most; fewer iterations than 100 tell too little.
  const int most = static_cast<int>(std::clamp(1e7 / (static_cast<double>(r.entries.size()) + 1), 100.0, 3000.0));
  const auto last_of = [&](std::size_t i) { return std::min(r.size, i + r.band); };
  const auto at = [&](std::size_t i, std::size_t j) { return r.entries[i * r.band + j - i]; };
  std::vector<double> v;
  const auto normalise = [&] {
    double square = 0;
    for (const double entry : v) square += entry * entry;
    const double norm = std::sqrt(square);
    for (double& entry : v) entry /= norm;
    return norm;
  };
  const auto iterate = [&](const auto& change) {  // v to RᵀR·v or its inverse: the eigenvalue
    v.assign(r.size, 0);
    std::minstd_rand random;  // the same numbers each time
    for (double& entry : v) entry = static_cast<double>(random()) / static_cast<double>(std::minstd_rand::max()) - 0.5;
    normalise();
    double before = 0, now = 0;
    for (int i = 0; i < most; ++i, before = now) {
      change();
      now = normalise();
      if (!std::isfinite(now) || std::abs(now - before) <= 1e-8 * now) break;
    }
    return now;
  };
  const double square = iterate([&] {
    for (std::size_t i = 0; i < r.size; ++i) {  // entries of v above i are not needed any more
      double sum = 0;
      for (std::size_t j = i; j < last_of(i); ++j) sum += at(i, j) * v[j];
      v[i] = sum;
    }
    for (std::size_t j = r.size; j-- > 0;) {
      double sum = 0;
      for (std::size_t i = j + 1 > r.band ? j + 1 - r.band : 0; i <= j; ++i) sum += at(i, j) * v[i];
      v[j] = sum;
    }
  });
  const double inverse = iterate([&] {
    for (std::size_t j = 0; j < r.size; ++j) {
      for (std::size_t i = j + 1 > r.band ? j + 1 - r.band : 0; i < j; ++i) v[j] -= at(i, j) * v[i];
      v[j] /= at(j, j);
    }
    for (std::size_t i = r.size; i-- > 0;) {
      for (std::size_t j = i + 1; j < last_of(i); ++j) v[i] -= at(i, j) * v[j];
      v[i] /= at(i, i);
    }
  });
  return {std::isfinite(inverse) ? 1 / std::sqrt(inverse) : 0, std::sqrt(square)};
}

namespace {

/// Of a tridiagonal matrix with the row below it, by rotations.
Spectrum singular_values(const std::vector<double>& diagonal, const std::vector<double>& beside) {
  UpperTriangle r{diagonal.size(), 3, std::vector<double>(3 * diagonal.size(), 0.0)};
  double above = diagonal[0], next = r.size > 1 ? beside[0] : 0;  // of the row that the next rotation takes
  for (std::size_t i = 0; i < r.size; ++i) {
    const double below = beside[i], length = std::hypot(above, below);
    const double c = length > 0 ? above / length : 1, s = length > 0 ? below / length : 0;
    const double right = i + 1 < r.size ? diagonal[i + 1] : 0, far = i + 2 < r.size ? beside[i + 1] : 0;
    double* const row = &r.entries[3 * i];
    row[0] = length, row[1] = c * next + s * right, row[2] = s * far;
    above = c * right - s * next, next = c * far;
  }
  return singular_values(r);
}

}  // namespace

void RitzValues::add(double alpha, double beta) {
  constexpr std::size_t kMost = 100'000;
  if (added_ == kMost || !(std::isfinite(alpha) && std::isfinite(beta))) return;
  if (kind_ == Coefficients::of_conjugate_gradients && !(alpha > 0 && beta >= 0)) return;
  ++added_;
  if (matrices_.empty()) begin_anew();
  if (kind_ == Coefficients::of_conjugate_gradients) return add_factors(alpha, beta);
  matrices_.back().diagonal.push_back(alpha);
  matrices_.back().beside.push_back(beta);
}

void RitzValues::add_factors(double alpha, double beta) {
  Tridiagonal& t = matrices_.back();
  if (t.diagonal.empty()) {
    t.diagonal.push_back(1 / alpha);
  } else {
    t.beside.push_back(std::sqrt(beta) / alpha_before_);
    t.diagonal.push_back(1 / alpha + beta / alpha_before_);
  }
  alpha_before_ = alpha;
}

std::optional<Spectrum> RitzValues::extremes() const {
  std::optional<Spectrum> all;
  for (const Tridiagonal& t : matrices_) {
    if (t.diagonal.size() < 2) continue;
    Spectrum found;
    if (kind_ == Coefficients::of_lanczos) {
      found = singular_values(t.diagonal, t.beside);
    } else {
      const double bound = bound_of(t.diagonal, t.beside);
      found = {eigenvalue(t.diagonal, t.beside, 0, bound), eigenvalue(t.diagonal, t.beside, t.diagonal.size() - 1, bound)};
    }
    if (!all) all = found;
    all->least = std::min(all->least, found.least);
    all->largest = std::max(all->largest, found.largest);
  }
  return all;
}

namespace {

/// What the steps need of vectors, whoever has them: r is random at first.
struct LanczosParts {
  std::function<void()> multiply, precondition;                 ///< q = A·p, z = M·r
  std::function<double()> pq, pp, rz;                           ///< dot products
  std::function<void()> take_z;                                 ///< p = z
  std::function<void(double alpha)> reduce;                     ///< r = r − alpha·q
  std::function<void(double beta)> turn;                        ///< p = z + beta·p
  std::function<void(double value, const char* what)> require;  ///< throws unless the value is positive
};

Spectrum run_lanczos(const LanczosParts& on, std::int64_t rows, ValueType type, int steps) {
  on.precondition();
  on.take_z();
  std::vector<double> diagonal, beside;
  double rz = on.rz(), beta = 0, alpha_before = 1;
  on.require(rz, "the preconditioner");
  const double noise = type == ValueType::f64 ? 1e-13 : 1e-5;
  double largest = 0;
  const double least = (type == ValueType::f64 ? 1e-24 : 1e-10) * rz;  // below it, rounding errors are left
  for (int i = 0; i < steps && i < rows && rz > least; ++i) {
    on.multiply();
    const double pq = on.pq();
    const double quotient = pq / on.pp();  // of Rayleigh
    largest = std::max(largest, quotient);
    if (std::abs(quotient) < noise * largest) break;  // what is left lies in the null space
    on.require(pq, "the matrix");
    const double alpha = rz / pq;
    diagonal.push_back(1 / alpha + (i == 0 ? 0 : beta / alpha_before));
    on.reduce(alpha);
    on.precondition();
    const double next = on.rz();
    beta = next / rz;
    beside.push_back(std::sqrt(std::max(0.0, beta)) / alpha);
    alpha_before = alpha;
    rz = next;
    on.turn(beta);
  }
  if (diagonal.empty()) return {1, 1};  // no rows
  const std::vector<double> values = tridiagonal_eigenvalues(diagonal, beside);
  return {values.front(), values.back()};
}

void require_positive(double value, const char* what, std::string_view setting) {
  if (value > 0) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} is not positive definite, so its eigenvalues cannot be bounded as {} needs it. Take "
                          "another {}, as {}",
                          what, fmt::format("the {} chebyshev", setting), setting, setting == "solver" ? "gmres" : "jacobi"),
              std::string(setting));
}

}  // namespace

Spectrum estimate_spectrum(const SpectrumParts& parts, int steps, std::string_view setting, Stream& stream) {
  if (parts.rows->size() == 0) return {1, 1};
  Context& context = parts.rows->context();
  const std::int64_t columns = parts.columns;
  const auto vector = [&] { return DistributedVector(parts.rows, parts.type, columns); };
  DistributedVector r = vector(), z = vector(), p = vector(), q = vector();
  FirstColumnDot sums(context, columns, parts.wait);
  const auto dot = [&](const DistributedVector& a, const DistributedVector& b) { return sums(a, b, stream); };
  fill_random(r, 11, Entries::fractions, stream);
  parts.project(r.view());
  LanczosParts on;
  on.multiply = [&] { parts.multiply(p.view(), q.view()); };
  on.precondition = [&] { parts.precondition(r.view(), z.view()); };
  on.pq = [&] { return dot(p, q); };
  on.pp = [&] { return dot(p, p); };
  on.rz = [&] { return dot(r, z); };
  on.take_z = [&] { copy(z, p, stream); };
  on.reduce = [&](double alpha) { axpy({-alpha}, q, r, stream); };
  on.turn = [&](double beta) { xpay(z, {beta}, p, stream); };
  on.require = [&](double value, const char* what) {
    context.communicator().run_agreed([&] { require_positive(value, what, setting); });
  };
  return run_lanczos(on, parts.rows->size(), parts.type, steps);
}

double estimate_largest(const LargestParts& parts, int steps, std::string_view setting, Communicator& ranks,
                        Stream& stream) {
  if (parts.all == 0) return 1;
  const std::int64_t rows = parts.own;
  const ValueType type = parts.type;
  const auto bytes = static_cast<std::size_t>(rows) * size_of(type);
  const Device device = stream.device();
  Buffer r, z, p, q, sums;
  std::optional<DotProducts> dots;
  ranks.run_agreed([&] {
    require_memory(device, 4 * static_cast<std::int64_t>(bytes), "the vectors of an estimate of eigenvalues");
    for (Buffer* const vector : {&r, &z, &p, &q}) *vector = Buffer(device, bytes);
    sums = Buffer(device, 2 * sizeof(double));
    dots.emplace(device);
  });
  const auto dot = [&](const Buffer& a, const Buffer& b) {
    double value = 0;
    parts.wait();
    if (rows > 0) {
      dots->compute(type, rows, a.data(), b.data(), sums.as<double>(), stream);
      copy_to_host(&value, sums.data(), sizeof value, stream);
    }
    return ranks.all_reduce(value, Reduction::sum);
  };
  const auto add = [&](double a, const Buffer& x, double b, const Buffer& y) {
    combine(type, rows, 1, {a}, x.data(), {b}, y.data(), stream);
  };
  parts.begin(r.data());
  LanczosParts on;
  on.multiply = [&] { parts.multiply(p.data(), q.data()); };
  on.precondition = [&] { parts.precondition(r.data(), z.data()); };
  on.pq = [&] { return dot(p, q); };
  on.pp = [&] { return dot(p, p); };
  on.rz = [&] { return dot(r, z); };
  on.take_z = [&] { add(1, z, 0, p); };
  on.reduce = [&](double alpha) { add(-alpha, q, 1, r); };
  on.turn = [&](double beta) { add(1, z, beta, p); };
  on.require = [&](double value, const char* what) { ranks.run_agreed([&] { require_positive(value, what, setting); }); };
  return run_lanczos(on, parts.all, type, steps).largest;
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
