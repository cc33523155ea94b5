#include "runtime/solvers/fields/schur.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "runtime/solvers/fields/split_rows.h"

namespace shardmat::fields {

using multigrid::NodeRows;

namespace {

/// As operators of second order do, in most rows, and mass matrices do not.
bool maps_constants_to_zero(const NodeRows& f) {
  constexpr double kSmall = 1e-6;
  const RowSums sums = row_sums(f);
  double counts[2] = {};
  for (std::size_t i = 0; i < sums.sum.size(); ++i) counts[std::abs(sums.sum[i]) <= kSmall * sums.magnitude[i] ? 1 : 0] += 1;
  f.rows->ranks().all_reduce(std::span<double>(counts), Reduction::sum);
  return counts[1] >= counts[0];
}

HostVector<double> diagonal_of(const NodeRows& a) {
  HostVector<double> diagonal(at(a.count()), 0.0);
  for (std::int64_t i = 0; i < a.count(); ++i)
    if (const std::int64_t k = a.find(i, static_cast<std::int32_t>(i)); k >= 0) diagonal[at(i)] = a.value[at(k)];
  return diagonal;
}

}  // namespace

SchurInverse::SchurInverse(const SaddlePoint& blocks, const multigrid::Operator& g, Options options, Context& context)
    : context_(context), options_(std::move(options)), g_(g) {
  NodeRows p = schur_complement(blocks.f, blocks.g, blocks.d, blocks.c);
  take_diagonal(p);
  take_constant(blocks);
  kind_ = choose_kind(blocks.f);
  if (kind_ == Kind::diagonal) return;
  for (double& value : p.value) value *= sign_;
  cycle_.emplace(context, std::move(p), options_.multigrid, options_.columns);
  if (kind_ == Kind::multigrid) return;
  f_.emplace(blocks.f, context, ValueType::f64, options_.columns);
  d_.emplace(blocks.d, context, ValueType::f64, options_.columns);
  weight_ = diagonal_of(blocks.f);
  for (double& w : weight_) w = 1 / w;
  first_.resize(weight_.size() * at(options_.columns)), second_.resize(first_.size());
  pressure_.resize(inverse_.size() * at(options_.columns));
}

SchurInverse::Kind SchurInverse::choose_kind(const NodeRows& f) const {
  ranks().run_agreed([&] {
    if (options_.kind == "commutator" && options_.absolute)
      throw Error(ErrorKind::usage,
                  "commutators make no symmetric preconditioner, which this solver needs; take gmres or fgmres, or the "
                  "diagonal",
                  "schur");
  });
  if (options_.kind == "commutator") return Kind::commutator;
  const bool multigrid = options_.kind == "multigrid" || (options_.kind == "auto" && !maps_constants_to_zero(f));
  return multigrid ? Kind::multigrid : Kind::diagonal;
}

void SchurInverse::take_diagonal(const NodeRows& p) {
  inverse_ = diagonal_of(p);
  double signs[2] = {};
  for (double& value : inverse_) {
    signs[value > 0 ? 1 : 0] += value == 0 ? 0 : 1;
    value = value == 0 ? 0 : 1 / value;
  }
  ranks().all_reduce(std::span<double>(signs), Reduction::sum);
  sign_ = signs[1] > signs[0] ? 1 : -1;
  ranks().run_agreed([&] {
    if (signs[0] > 0 && signs[1] > 0)
      throw Error(
          ErrorKind::usage,
          fmt::format("this is no saddle point: the Schur complement is positive in {:.0f} rows and negative in {:.0f}",
                      signs[1], signs[0]),
          "preconditioner");
  });
  const auto zero = std::find(inverse_.begin(), inverse_.end(), 0.0);
  ranks().run_agreed([&] {
    if (zero != inverse_.end())
      throw Error(
          ErrorKind::input,
          fmt::format("row {} of the second field is coupled with no unknown of the first, and its diagonal is 0: the "
                      "matrix is singular",
                      p.rows->first() + (zero - inverse_.begin())),
          "matrix");
  });
  if (options_.absolute)
    for (double& value : inverse_) value = std::abs(value);
}

/// G·1 = 0: then S·1 is C·1, as small as that may be, and no diagonal tells it.
void SchurInverse::take_constant(const SaddlePoint& blocks) {
  if (!are_zero(row_sums(blocks.g), ranks())) return;
  RowSums of_c = row_sums(blocks.c);
  double sum = 0;
  for (const double value : of_c.sum) sum += value;
  constant_sum_ = ranks().all_reduce(sum, Reduction::sum);
  singular_ = are_zero(of_c, ranks());
  apart_ = !singular_ && constant_sum_ != 0;
  if (apart_) c_of_constant_ = std::move(of_c.sum);
}

std::int64_t SchurInverse::device_bytes() const {
  return (cycle_ ? cycle_->device_bytes() : 0) + (f_ ? f_->device_bytes() + d_->device_bytes() : 0);
}

std::string SchurInverse::describe() const {
  const char* const text = kind_ == Kind::diagonal ? "the diagonal of the Schur complement"
                           : kind_ == Kind::multigrid
                               ? "multigrid of the Schur complement"
                               : "commutators for the Schur complement, with two cycles of multigrid,";
  return text;
}

Dense SchurInverse::view(HostVector<double>& v) const {
  return {v.data(),
          std::ssize(v) / options_.columns,
          options_.columns,
          options_.columns,
          DenseOrder::row_major,
          ValueType::f64,
          context_.device()};
}

void SchurInverse::apply(HostVector<double>& r, HostVector<double>& z, double scale, Stream& stream) const {
  const auto columns = at(options_.columns);
  HostVector<double> part = share_of_constant([&](std::size_t i) { return r[i]; });
  if (apart_)
    for (std::size_t i = 0; i < r.size(); ++i) r[i] -= c_of_constant_[i / columns] * part[i % columns];
  if (kind_ == Kind::diagonal) {
    for (std::size_t i = 0; i < r.size(); ++i) z[i] = inverse_[i / columns] * r[i];
  } else if (kind_ == Kind::multigrid) {
    cycle(r, z, scale, stream);
    if (sign_ < 0 && !options_.absolute)
      for (double& value : z) value = -value;
  } else {
    commute(r, z, scale, stream);
  }
  if (!apart_) return;
  if (options_.absolute && constant_sum_ < 0)
    for (double& value : part) value = -value;
  const HostVector<double> left = share_of_constant([&](std::size_t i) { return c_of_constant_[i / columns] * z[i]; });
  for (std::size_t i = 0; i < z.size(); ++i) z[i] += part[i % columns] - left[i % columns];
}

void SchurInverse::cycle(HostVector<double>& r, HostVector<double>& z, double scale, Stream& stream) const {
  cycle_->apply(view(r), view(z), scale, stream);
  stream.synchronize();
}

/// z = −P⁻¹·D·W·F·W·G·P⁻¹·r; the sign of P is there twice.
void SchurInverse::commute(HostVector<double>& r, HostVector<double>& z, double scale, Stream& stream) const {
  const auto columns = at(options_.columns);
  const auto weigh = [&](HostVector<double>& v) {
    for (std::size_t i = 0; i < v.size(); ++i) v[i] *= weight_[i / columns];
  };
  const auto multiply = [&](const multigrid::Operator& a, const HostVector<double>& x, HostVector<double>& y) {
    std::copy(x.begin(), x.end(), static_cast<double*>(a.x()));
    a.multiply(1, 0, y.data(), stream);
    stream.synchronize();
  };
  cycle(r, pressure_, scale, stream);
  multiply(g_, pressure_, first_);
  weigh(first_);
  multiply(*f_, first_, second_);
  weigh(second_);
  multiply(*d_, second_, pressure_);
  cycle(pressure_, z, scale, stream);
  for (double& value : z) value = -value;
}

/// Sums of each column over 1ᵀ·C·1; nothing if the constant is not apart. Collective.
template <class Value>
HostVector<double> SchurInverse::share_of_constant(const Value& value) const {
  if (!apart_) return {};
  HostVector<double> sums(at(options_.columns), 0.0);
  for (std::size_t i = 0; i < inverse_.size() * sums.size(); ++i) sums[i % sums.size()] += value(i);
  ranks().all_reduce(std::span<double>(sums), Reduction::sum);
  for (double& sum : sums) sum /= constant_sum_;
  return sums;
}

}  // namespace shardmat::fields
