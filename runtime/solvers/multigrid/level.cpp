#include "runtime/solvers/multigrid/level.h"

#include <numeric>
#include <type_traits>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/memory_limits.h"
#include "runtime/maps/row_map.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/loop/spectrum.h"

namespace shardmat::multigrid {
namespace {

constexpr int kLanczosSteps = 10;
constexpr double kAbove = 1.05;
/// The smoother works on [lower, 1] of the spectrum: one step, and more.
constexpr double kLowerOfOne = 0.25, kLower = 0.1;
constexpr int kMostUnknowns = 6;

/// Calls f(std::integral_constant<int, size>) for 1 … 6.
template <int kSize = 1, class F>
void with_size(int size, const F& f) {
  if constexpr (kSize < kMostUnknowns)
    if (size != kSize) return with_size<kSize + 1>(size, f);
  f(std::integral_constant<int, kSize>());
}

/// The unknowns of the nodes, in their order.
std::shared_ptr<const RowMap> map_of(const Nodes& nodes, int size, Context& context) {
  RowMapParts parts;
  context.communicator().run_agreed([&] {
    parts.size = nodes.all() * size;
    for (const std::int64_t start : nodes.starts()) parts.starts.push_back(start * size);
    parts.ids.resize(at(nodes.own() * size));
    std::iota(parts.ids.begin(), parts.ids.end(), nodes.first() * size);
  });
  return RowMap::make(std::move(parts), context);
}

}  // namespace

Level::Level(const NodeRows& a, const HostVector<double>& inverse, Context& context, ValueType type, int columns)
    : context_(context), type_(type), size_(a.row_size), nodes_(a.rows), a_(a, context, type, columns) {
  context.communicator().run_agreed([&] {
    passes_.emplace(context.device(), columns);
    require_memory(context.device(), static_cast<std::int64_t>(inverse.size() * size_of(type)) + 2 * a_.x_bytes(),
                   "a level of multigrid");
    diagonal_ = Buffer(context.device(), inverse.size() * size_of(type));
    put_diagonal(inverse);
    r_ = Buffer(context.device(), at(a_.x_bytes()));
    x_ = Buffer(context.device(), at(a_.x_bytes()));
  });
}

void Level::put_diagonal(const HostVector<double>& inverse) {
  to_device(diagonal_.data(), inverse, type_, context_.stream());
}

double Level::find_radius(Stream& stream) const {
  const Buffer scratch = context_.communicator().run_agreed([&] { return Buffer(context_.device(), at(a_.x_bytes())); });
  SpectrumParts parts;
  parts.rows = map_of(*nodes_, size_, context_);
  parts.type = type_;
  parts.columns = passes_->columns();
  parts.multiply = [&](const Dense& x, const Dense& y) { a_.multiply(1, x.data, 0, y.data, stream); };
  parts.precondition = [&](const Dense& r, const Dense& z) {
    step(r.data, scratch.data(), z.data, {1, 0}, krylov::Before::nothing, stream);
  };
  parts.wait = [&] { a_.wait(stream); };
  return kAbove * estimate_spectrum(parts, kLanczosSteps, "preconditioner", stream).largest;
}

void Level::set_smoother(double radius, int degree) {
  const double lower = degree == 1 ? kLowerOfOne : kLower;
  const double centre = (1 + lower) * radius / 2, half = (1 - lower) * radius / 2, sigma = centre / half;
  steps_.assign(1, {1 / centre, 0});
  for (double ratio = 1 / sigma; std::ssize(steps_) < degree;) {
    const double next = 1 / (2 * sigma - ratio);
    steps_.push_back({2 * next / half, next * ratio});
    ratio = next;
  }
}

void Level::set_transfer(const NodeRows& p, const ByColumn& columns) {
  from_coarse_.emplace(p, context_, type_, passes_->columns());
  to_coarse_.emplace(transposed(p, columns), context_, type_, passes_->columns());
}

void Level::set_inverse(const NodeRows& inverse) { inverse_.emplace(inverse, context_, type_, passes_->columns()); }

void Level::update(const NodeRows& a, const HostVector<double>& inverse) {
  a_.update(a, context_.stream());
  put_diagonal(inverse);
}

void Level::update_transfer(const NodeRows& p, const ByColumn& columns) {
  from_coarse_->update(p, context_.stream());
  to_coarse_->update(transposed(p, columns), context_.stream());
}

void Level::update_inverse(const NodeRows& inverse) { inverse_->update(inverse, context_.stream()); }

void Level::step(const void* r, void* d, void* x, Step factors, krylov::Before before, Stream& stream) const {
  dispatch(type_, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    with_size(size_, [&]<int kSize>(std::integral_constant<int, kSize>) {
      passes_->run(
          krylov::SmoothBlocks<T, kSize>{diagonal_.as<T>(), static_cast<const T*>(r), static_cast<T*>(d), static_cast<T*>(x),
                                         passes_->columns(), static_cast<T>(factors.a), static_cast<T>(factors.b), before},
          nodes_->own(), stream);
    });
  });
}

void Level::smooth(krylov::Before before, Stream& stream) const {
  for (const Step& factors : steps_) {
    step(r(), a_.x(), x(), factors, before, stream);
    if (&factors != &steps_.back()) a_.multiply(-1, 1, r(), stream);
    before = krylov::Before::step;
  }
}

void Level::go_down(const Level& coarse, Stream& stream) const {
  smooth(krylov::Before::nothing, stream);
  a_.multiply(-1, 1, r(), stream);
  to_coarse_->multiply(1, r(), 0, coarse.r(), stream);
}

void Level::come_up(const Level& coarse, Stream& stream) const {
  from_coarse_->multiply(1, coarse.x(), 0, a_.x(), stream);
  a_.multiply(-1, 1, r(), stream);
  smooth(krylov::Before::correction, stream);
}

void Level::solve(Stream& stream) const {
  if (inverse_) return inverse_->multiply(1, r(), 0, x(), stream);
  smooth(krylov::Before::nothing, stream);
}

std::int64_t Level::device_bytes() const {
  auto bytes = static_cast<std::int64_t>(diagonal_.bytes() + r_.bytes() + x_.bytes()) + a_.device_bytes();
  for (const std::optional<Operator>* const one : {&to_coarse_, &from_coarse_, &inverse_})
    if (*one) bytes += (*one)->device_bytes();
  return bytes;
}

std::int64_t Level::cycle_bytes() const {
  if (inverse_) return inverse_->compulsory_bytes(0);
  const auto steps = static_cast<std::int64_t>(steps_.size()), vector = a_.x_bytes();
  const std::int64_t pass = 5 * vector + static_cast<std::int64_t>(diagonal_.bytes());
  if (!to_coarse_) return steps * pass + (steps - 1) * a_.compulsory_bytes(1);
  return 2 * steps * (pass + a_.compulsory_bytes(1)) + to_coarse_->compulsory_bytes(0) + from_coarse_->compulsory_bytes(0);
}

}  // namespace shardmat::multigrid
