#include "runtime/solvers/multigrid/level.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/memory_limits.h"
#include "kernels/blocks/setup.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/loop/spectrum.h"
#include "runtime/solvers/multigrid/block_steps.h"

namespace shardmat::multigrid {
namespace {

constexpr double kAbove = 1.05;
constexpr double kMostGrowth = 1.5;  ///< by power steps, which find less than there is; from 2 on a smoother diverges
constexpr int kPowerSteps = 10;

}  // namespace

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

Level::Level(const NodeRows& a, Context& context, ValueType type, int columns)
    : context_(context), type_(type), size_(a.row_size), nodes_(a.rows), a_(a, context, type, columns) {
  make_vectors(columns);
}

Level::Level(const blocks::BlockRows& a, std::shared_ptr<const Nodes> nodes, Context& context, ValueType type, int columns,
             const Buffer* modes)
    : context_(context),
      type_(sum_type(type)),
      size_(a.row_size),
      nodes_(std::move(nodes)),
      a_(a, *nodes_, true, context, type, columns, modes) {
  make_vectors(columns);
}

void Level::make_vectors(int columns) {
  context_.communicator().run_agreed([&] {
    passes_.emplace(context_.device(), columns);
    require_memory(context_.device(), 2 * a_.x_bytes(), "a level of multigrid");
    r_ = Buffer(context_.device(), at(a_.x_bytes()));
    x_ = Buffer(context_.device(), at(a_.x_bytes()));
  });
}

SmootherInputs Level::smoother_inputs(int degree) const {
  return {a_, *passes_, context_.device(), type_, size_, nodes_->own(), degree, r(), x()};
}

double Level::find_radius(const HostVector<double>& inverse, int steps, Stream& stream) const {
  Buffer scratch;
  std::optional<BlockSteps> jacobi;
  context_.communicator().run_agreed([&] {
    scratch = Buffer(context_.device(), at(a_.x_bytes()));
    jacobi.emplace(smoother_inputs(1));
    jacobi->put(inverse, stream);
  });
  SpectrumParts parts;
  parts.rows = map_of(*nodes_, size_, context_);
  parts.type = type_;
  parts.columns = passes_->columns();
  parts.multiply = [&](const Dense& x, const Dense& y) { a_.multiply(1, x.data, 0, y.data, stream); };
  parts.precondition = [&](const Dense& r, const Dense& z) {
    jacobi->step(r.data, scratch.data(), z.data, {1, 0}, krylov::Before::nothing, stream);
  };
  parts.wait = [&] { a_.wait(stream); };
  return kAbove * estimate_spectrum(parts, steps, "preconditioner", stream).largest;
}

double Level::find_radius(const Buffer& inverse, int steps, Stream& stream) const {
  Communicator& ranks = context_.communicator();
  std::optional<BlockSteps> jacobi;
  Buffer scratch;
  ranks.run_agreed([&] {
    jacobi.emplace(smoother_inputs(1));
    jacobi->put(inverse, stream);
    scratch = Buffer(context_.device(), at(a_.x_bytes()));
  });
  const std::int64_t of_node = std::int64_t{size_} * passes_->columns(),  // all columns are one vector here
      entries = nodes_->own() * of_node;
  LargestParts parts;
  parts.all = nodes_->all() * of_node, parts.own = entries, parts.type = type_;
  parts.begin = [&](void* r) { blocks::fill_fractions(type_, nodes_->first() * of_node, entries, r, stream); };
  parts.multiply = [&](const void* x, void* y) { a_.multiply(1, x, 0, y, stream); };
  parts.precondition = [&](const void* r, void* z) {
    jacobi->step(r, scratch.data(), z, {1, 0}, krylov::Before::nothing, stream);
  };
  parts.wait = [&] { a_.wait(stream); };
  return kAbove * estimate_largest(parts, steps, "preconditioner", ranks, stream);
}

void Level::set_smoother(const SmootherEntry& entry, int degree, const Buffer& inverse, double radius) {
  context_.communicator().run_agreed([&] {
    smoother_ = entry.make(smoother_inputs(degree));
    smoother_->take(inverse, radius, context_.stream());
  });
}

void Level::set_transfer(const DeviceCoarsening& way) {
  const int columns = passes_->columns();
  from_coarse_.emplace(way.p(), *way.p_cols(), false, context_, type_, columns);
  to_coarse_.emplace(way.transposed_p(), *nodes_, *way.p_cols(), context_, type_, columns);
}

void Level::update_transfer(const DeviceCoarsening& way) {
  from_coarse_->update(way.p(), context_.stream());
  to_coarse_->update(way.transposed_p(), context_.stream());
}

void Level::set_smoother(const SmootherEntry& entry, int degree, const NodeRows& a, const HostVector<double>& inverse,
                         double radius) {
  context_.communicator().run_agreed([&] { smoother_ = entry.make(smoother_inputs(degree)); });
  damps_ = entry.needs_damping;
  take_smoother(a, inverse, radius);
}

void Level::take_smoother(const NodeRows& a, const HostVector<double>& inverse, double radius) {
  context_.communicator().run_agreed([&] { smoother_->take(a, inverse, radius, context_.stream()); });
  if (damps_) smoother_->damp(std::min(1.0, kMostGrowth / find_growth(context_.stream())));
}

double Level::find_growth(Stream& stream) const {
  HostVector<double> x(at(nodes_->own() * size_ * passes_->columns()));
  std::uint64_t state = static_cast<std::uint64_t>(nodes_->first()) + 1;
  for (double& entry : x) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    entry = (state >> 63) == 0 ? 1 : -1;
  }
  double growth = 0;
  for (int step = 0; step <= kPowerSteps; ++step) {
    double squares = 0;
    for (const double entry : x) squares += entry * entry;
    const double length = std::sqrt(context_.communicator().all_reduce(squares, Reduction::sum));
    if (step > 0) growth = length;
    if (step == kPowerSteps || !(length > 0) || !std::isfinite(length)) break;
    for (double& entry : x) entry /= length;
    to_device(a_.x(), x, type_, stream);
    a_.multiply(1, 0, r(), stream);
    a_.wait(stream);
    smoother_->precondition(stream);
    x = to_host(a_.x(), std::ssize(x), type_, stream);
  }
  return growth;
}

void Level::set_transfer(const NodeRows& p, const ByColumn& columns) {
  from_coarse_.emplace(p, context_, type_, passes_->columns());
  to_coarse_.emplace(p, columns, context_, type_, passes_->columns());
}

void Level::set_inverse(const NodeRows& inverse) { inverse_.emplace(inverse, context_, type_, passes_->columns()); }

void Level::set_second_visit(Combination combination) {
  second_visit_.emplace(a_, *passes_, context_, type_, r(), x(), combination, nodes_->owners());
}

void Level::update(const NodeRows& a) { a_.update(a, context_.stream()); }

void Level::update_smoother(const NodeRows& a, const HostVector<double>& inverse, double radius) {
  take_smoother(a, inverse, radius);
}

void Level::update_transfer(const NodeRows& p, const ByColumn& columns) {
  from_coarse_->update(p, context_.stream());
  to_coarse_->update(p, columns, context_.stream());
}

void Level::update_inverse(const NodeRows& inverse) { inverse_->update(inverse, context_.stream()); }

void Level::go_down(const Level& coarse, Stream& stream) const {
  smoother_->smooth(krylov::Before::nothing, stream);
  a_.multiply(-1, 1, r(), stream);
  to_coarse_->multiply(r(), coarse.r(), stream);
}

void Level::come_up(const Level& coarse, Stream& stream) const {
  from_coarse_->multiply(1, coarse.x(), 0, a_.x(), stream);
  smoother_->smooth(krylov::Before::correction, stream);
}

void Level::solve(Stream& stream) const {
  if (inverse_) return inverse_->multiply(1, r(), 0, x(), stream);
  smoother_->smooth(krylov::Before::nothing, stream);
}

bool Level::capturable() const {
  const auto can = [](const auto& part) { return !part || part->capturable(); };
  return a_.capturable() && can(to_coarse_) && can(from_coarse_) && can(inverse_);
}

std::int64_t Level::device_bytes() const {
  auto bytes = static_cast<std::int64_t>(r_.bytes() + x_.bytes()) + a_.device_bytes();
  for (const std::optional<Operator>* const one : {&from_coarse_, &inverse_})
    if (*one) bytes += (*one)->device_bytes();
  return bytes + (to_coarse_ ? to_coarse_->device_bytes() : 0) + (smoother_ ? smoother_->device_bytes() : 0) +
         (second_visit_ ? second_visit_->device_bytes() : 0);
}

std::int64_t Level::visit_bytes() const {
  if (inverse_) return inverse_->compulsory_bytes(0);
  if (!to_coarse_) return smoother_->smooth_bytes();
  return 2 * (smoother_->smooth_bytes() + a_.compulsory_bytes(1)) + to_coarse_->compulsory_bytes() +
         from_coarse_->compulsory_bytes(0);
}

}  // namespace shardmat::multigrid
