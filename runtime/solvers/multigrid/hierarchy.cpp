#include "runtime/solvers/multigrid/hierarchy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "kernels/base/kept_arrays.h"
#include "kernels/formats/kept_upload.h"
#include "runtime/context/context.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/multigrid/adaptive.h"
#include "runtime/solvers/multigrid/aggregate.h"
#include "runtime/solvers/multigrid/asymmetry.h"
#include "runtime/solvers/multigrid/coarse.h"
#include "runtime/solvers/multigrid/free_modes.h"
#include "runtime/solvers/multigrid/galerkin.h"
#include "runtime/solvers/multigrid/hinges.h"
#include "runtime/solvers/multigrid/pairwise.h"
#include "runtime/solvers/multigrid/prolong.h"
#include "runtime/solvers/multigrid/set_up_rules.h"
#include "runtime/solvers/multigrid/take_nodes.h"

namespace shardmat::multigrid {
namespace {

/// A product is not made if the blocks that are foretold for it, divided by this, are too many.
constexpr double kSurelyForetold = 1.1;

/// Of all ranks, stored zeros of blocks included. Collective.
double nonzeros(const NodeRows& a) {
  return static_cast<double>(a.rows->ranks().all_reduce(a.blocks() * a.block_entries(), Reduction::sum));
}

/// A coarse level takes at most about so much of the first level's time on the ranks that have it, but for small parts.
constexpr std::int64_t kLeastPart = 1000, kPartOfFirst = 4;

/// Frees the values; the pattern stays.
void keep_pattern(NodeRows& rows) { rows.value = {}; }

}  // namespace

Hierarchy::Hierarchy(DistributedMatrix& matrix, const MultigridOptions& options, const HeldRows* held, int columns)
    : context_(matrix.context()), options_(options), type_(matrix.type()), columns_(columns) {
  const Timer timer;
  const KeptArrays reuse;
  context_.communicator().run_agreed([&] { passes_.emplace(context_.device(), columns); });
  map_ = matrix.y_rows();
  order_rows(*map_);
  size_ = static_cast<int>(block_jacobi_size(matrix));
  mid_edges_ = number_mid_edges(options.mid_edges.get(), *map_, size_, context_.communicator());
  if (!build_on_device(matrix, held)) {
    KeptUpload::forget();
    require_type_of_host();
    NodeRows a = take_nodes(matrix, size_, held, context_.stream());
    took("rows");
    build(std::move(a));
  }
  report_.seconds = timer.seconds();
}

Hierarchy::Hierarchy(Context& context, NodeRows a, const MultigridOptions& options, int columns)
    : context_(context), options_(options), type_(ValueType::f64), columns_(columns) {
  const Timer timer;
  const KeptArrays reuse;
  context_.communicator().run_agreed([&] { passes_.emplace(context_.device(), columns); });
  map_ = map_of(*a.rows, a.row_size, context_);
  require_type_of_host();
  build(std::move(a));
  report_.seconds = timer.seconds();
}

Hierarchy::Hierarchy(const Hierarchy& like, NodeRows a, int columns)
    : context_(like.context_),
      options_(like.options_),
      type_(like.type_),
      columns_(columns),
      mid_edges_(like.mid_edges_),
      map_(like.map_) {
  options_.near_null_space = "constants", options_.cycle = "V";
  build(std::move(a));
}

void Hierarchy::took(const char* part) {
  const double seconds = std::exchange(since_part_, Timer()).seconds();
  const auto found =
      std::find_if(report_.parts.begin(), report_.parts.end(), [&](const SetupPart& p) { return p.name == part; });
  if (found == report_.parts.end()) report_.parts.push_back({part, seconds});
  else found->seconds += seconds;
}

void Hierarchy::order_rows(const RowMap& map) {
  context_.communicator().run_agreed([&] {
    if (map.in_source_order()) return;
    const HostVector<std::int64_t> rows = map.rows_by_place();
    rows_ = Buffer(context_.device(), rows.size() * sizeof(std::int64_t));
    copy_to_device(rows_.data(), rows.data(), rows_.bytes(), context_.stream());
    context_.stream().synchronize();
  });
}

std::optional<NodeRows> Hierarchy::coarsen(const NodeRows& a, const HostVector<double>& inverse, double radius, Modes& modes,
                                           double left) {
  Communicator& ranks = context_.communicator();
  const CouplingNorms norms(a);
  bool heed_hinges = symmetric_ && a.row_size > 1;
  HostVector<char> hinges = heed_hinges ? find_hinges(a, inverse) : HostVector<char>();
  const double first = first_strength();
  bool was_too_dense = false, wide = false;
  for (double strength = first;; strength = next_strength(strength)) {
    if (strength == 0 && heed_hinges) heed_hinges = false, hinges = {}, strength = first;
    else if (strength == 0 && was_too_dense && symmetric_ && !wide) wide = true, strength = first;
    const bool last = strength == 0;
    const auto strong = [&] { return strong_couplings(a, norms, strength, hinges); };
    const Aggregates aggregates =
        symmetric_ ? make_aggregates(wide ? squared(strong()) : strong()) : match_pairs(a, norms, strength);
    double counts[3] = {static_cast<double>(aggregates.count), static_cast<double>(aggregates.single), 0};
    for (const std::int32_t of : aggregates.of_node) counts[2] += of >= 0 ? 1 : 0;
    ranks.all_reduce(std::span<double>(counts), Reduction::sum);
    if (counts[0] == 0) return std::nullopt;
    const bool too_many = 2 * counts[1] > counts[2] || counts[0] * modes.count > kLeastCoarsening * counts[2] * modes.size;
    took("aggregates");
    if (too_many && !last) continue;
    if (counts[0] * modes.count > kLeastCoarsening * counts[2] * modes.size) return std::nullopt;
    Modes next_modes;
    NodeRows t = tentative(aggregates, modes, a.rows, next_modes, least_nodes(modes.count));
    NodeRows p = symmetric_ ? smoothed(t, a, inverse, damping(a.row_size) / radius) : t;
    const WithGhostRows all_p(p, a.cols);
    Galerkin product(p);
    took("prolongations");
    const auto too_dense = [&](double blocks) {
      const bool is = !last && ranks.all_reduce(blocks, Reduction::sum) * modes.count * modes.count > left;
      was_too_dense = was_too_dense || is;
      return is;
    };
    if (too_dense(static_cast<double>(product.foretold_blocks(a, t, p, all_p)) / kSurelyForetold)) continue;
    NodeRows next = product(a, p, all_p);
    took("coarse matrices");
    if (too_dense(static_cast<double>(next.blocks()))) continue;
    mend_diagonal(next, t, a);
    modes = std::move(next_modes);
    coarsenings_.push_back({std::move(t), std::move(p), std::move(product), symmetric_});
    return next;
  }
}

/// As Vaněk, Mandel and Brezina: a coarse level's couplings reach farther, and are weaker.
double Hierarchy::first_strength() const {
  return symmetric_ ? std::ldexp(options_.strength, 1 - static_cast<int>(levels_.size())) : options_.strength;
}

std::int64_t Hierarchy::least_nodes(std::int64_t size) const {
  const std::int64_t first = report_.levels.front().unknowns / context_.communicator().size(),
                     least = std::min(options_.rank_size, std::max(kLeastPart, first / kPartOfFirst));
  return (least + size - 1) / size;
}

NodeRows Hierarchy::drop_middles(const NodeRows& a, Modes& modes) {
  MidEdgeTransfer to = drop_mid_edges(a, modes, mid_edges_, least_nodes(a.row_size));
  const WithGhostRows all_p(to.p, a.cols);
  Galerkin product(to.p);
  took("prolongations");
  NodeRows next = product(a, to.p, all_p);
  mend_diagonal(next, to.corners, a);
  took("coarse matrices");
  modes = std::move(to.modes);
  coarsenings_.push_back({std::move(to.corners), std::move(to.p), std::move(product), false});
  return next;
}

/// What the last level has of the null vectors: on the way down the modes keep them.
Modes Hierarchy::free_on_last_level(int size) const {
  if (!coarsenings_.empty()) size = coarsenings_.front().tentative.row_size;
  Modes free{size, null_vectors_.count, null_vectors_.of_own};
  for (const Coarsening& way : coarsenings_) free = restricted(way.tentative, free);
  return free;
}

void Hierarchy::take_kind(double asymmetry) {
  symmetric_ = asymmetry <= kMostAsymmetry;
  smoother_ = &find_smoother(options_.smoother != "auto" ? options_.smoother : symmetric_ ? "chebyshev" : "l1_jacobi");
  cycle_ = options_.cycle != "auto" ? options_.cycle : symmetric_ ? "V" : options_.may_vary ? "K" : "W";
  context_.communicator().run_agreed([&] {
    if (!symmetric_ && !smoother_->any_matrix)
      throw Error(
          ErrorKind::usage,
          fmt::format("the smoother {} is for symmetric matrices, and this one is not: ‖A − Aᵀ‖ is about {:.2g}·‖A‖; "
                      "take l1_jacobi, or leave the smoother out",
                      smoother_->name, asymmetry),
          "smoother");
  });
}

void Hierarchy::require_type_of_host() const {
  context_.communicator().run_agreed([&] {
    if (is_half(options_.inner))
      throw Error(ErrorKind::usage,
                  fmt::format("multigrid in f16 needs its set-up on a GPU, and this one is in host memory: {}; take f32",
                              report_.why_on_host.empty() ? "there is no GPU" : report_.why_on_host),
                  "inner");
  });
}

Combination Hierarchy::combination() const {
  return cycle_ == "W" ? Combination::sum : symmetric_ ? Combination::energy : Combination::residual;
}

double Hierarchy::radius_of(const Level& level, const HostVector<double>& inverse, int steps) const {
  return symmetric_ ? level.find_radius(inverse, steps, context_.stream()) : 0;
}

void Hierarchy::adapt(const NodeRows& a, NearNullSpace& space) {
  Communicator& ranks = context_.communicator();
  ranks.run_agreed([&] {
    if (!symmetric_)
      throw Error(ErrorKind::usage,
                  "adaptive vectors are for symmetric matrices, and this one is not; take constants, or leave the near null "
                  "space out",
                  "near_null_space");
  });
  if (a.rows->all() * a.row_size <= options_.coarse_size) return;  // solved exactly
  const Timer timer;
  const int count = adaptive_vectors(a.row_size);
  const Hierarchy simple(*this, a, count);
  space.modes = with_slow_vectors(space.modes, count, *map_, ranks, [&](HostVector<double>& x) { simple.sweep(x); });
  space.why += fmt::format(" and {} adaptive vector{}: {} cycles each, {:.1f} s", count, count == 1 ? "" : "s",
                           kAdaptiveCycles, ranks.all_reduce(timer.seconds(), Reduction::max));
}

void Hierarchy::clear_levels() {
  levels_.clear(), coarsenings_.clear(), on_device_.clear();
  device_pattern_ = {}, value_places_.reset();
  report_.levels.clear();
}

void Hierarchy::build(NodeRows a) {
  clear_levels();
  NearNullSpace space = near_null_space(a, options_);
  take_kind(asymmetry(a));
  if (options_.near_null_space == "adaptive") adapt(a, space);
  Modes& modes = space.modes;
  report_.modes = space.why;
  if (symmetric_) null_vectors_ = free_modes(a, modes, allowed_force(type_));
  took("near null space");
  Growth growth;
  growth.first = nonzeros(a), growth.most = most_complexity(modes.size, modes.count);
  for (;;) {
    const HostVector<double> inverse = inverse_diagonal(a);
    levels_.push_back(std::make_unique<Level>(a, context_, options_.inner, columns_));
    Level& here = *levels_.back();
    const double here_nonzeros = nonzeros(a);
    growth.all += here_nonzeros;
    const std::int64_t unknowns = a.rows->all() * a.row_size;
    report_.levels.push_back(
        {unknowns, static_cast<std::int64_t>(here_nonzeros), 0, unknowns <= options_.coarse_size, a.rows->owners()});
    took("stored matrices");
    std::optional<NodeRows> next;
    if (unknowns <= options_.coarse_size) {
      here.set_inverse(dense_inverse(a, free_on_last_level(a.row_size), symmetric_));
      took("inverse");
    } else {
      const double radius = radius_of(here, inverse, kLanczosSteps);
      report_.levels.back().radius = radius;
      here.set_smoother(*smoother_, options_.smoother_degree, a, inverse, radius);
      took("smoothers");
      if (std::ssize(levels_) < options_.levels) {
        if (levels_.size() == 1 && mid_edges_.any) next = drop_middles(a, modes);
        else next = coarsen(a, inverse, radius, modes, growth.most * growth.first - growth.all);
      }
    }
    if (levels_.size() == 1) keep_pattern(a), first_pattern_ = std::move(a);
    if (!next) break;
    // Two visits of a level may take as long as one of the first level.
    if (levels_.size() > 1 && cycle_ != "V" && 2 * growth.visits * here_nonzeros <= growth.first)
      here.set_second_visit(combination()), growth.visits *= 2;
    here.set_transfer(coarsenings_.back().p, coarsenings_.back().galerkin.columns());
    took("stored matrices");
    a = std::move(*next);
  }
  finish(growth);
}

void Hierarchy::finish(const Growth& growth) {
  report_.cycle = cycle_, report_.smoother = smoother_->name, report_.smoothed = symmetric_;
  report_.operator_complexity = growth.first > 0 ? growth.all / growth.first : 1;
  report_.bytes = context_.communicator().all_reduce(device_bytes(), Reduction::sum);
}

void Hierarchy::refresh(DistributedMatrix& matrix, const HeldRows* held) {
  const Timer timer;
  const KeptArrays reuse;
  Communicator& ranks = context_.communicator();
  since_part_ = Timer(), report_.parts.clear();
  const bool was_on_device = report_.set_up_on_gpu;
  if (refresh_on_device(matrix, held) || (was_on_device && build_on_device(matrix, held))) {
    report_.seconds = timer.seconds();
    return;
  }
  require_type_of_host();
  NodeRows a = take_nodes(matrix, size_, held, context_.stream());
  took("rows");
  const bool same = !was_on_device && a.start == first_pattern_.start && a.column == first_pattern_.column &&
                    symmetric_ == (asymmetry(a) <= kMostAsymmetry);
  if (ranks.all_reduce(same ? 1 : 0, Reduction::min) == 0 || options_.refresh == "anew") {
    build(std::move(a));
    report_.seconds = timer.seconds();
    return;
  }
  // The radius hardly depends on the values: it is kept, unless a few steps find more.
  const bool keeps = options_.refresh == "keep";
  for (std::size_t l = 0;; ++l) {
    const HostVector<double> inverse = inverse_diagonal(a);
    double& radius = report_.levels[l].radius;
    const auto find_radius = [&] {
      radius = std::max(keeps ? radius : 0, radius_of(*levels_[l], inverse, keeps ? kStepsOfRefresh : kLanczosSteps));
    };
    levels_[l]->update(a);
    took("stored matrices");
    if (l == coarsenings_.size()) {
      const Modes free = free_on_last_level(a.row_size);
      if (levels_[l]->is_solved()) levels_[l]->update_inverse(dense_inverse(a, free, symmetric_));
      else find_radius(), levels_[l]->update_smoother(a, inverse, radius);
      took(levels_[l]->is_solved() ? "inverse" : "smoothers");
      break;
    }
    Coarsening& way = coarsenings_[l];
    find_radius();
    levels_[l]->update_smoother(a, inverse, radius);
    took("smoothers");
    if (options_.refresh == "smooth" && way.is_smoothed) {
      way.p = smoothed(way.tentative, a, inverse, damping(a.row_size) / radius);
      took("prolongations");
      levels_[l]->update_transfer(way.p, way.galerkin.columns());
      took("stored matrices");
    }
    NodeRows next = way.galerkin(a, way.p, WithGhostRows(way.p, a.cols));
    mend_diagonal(next, way.tentative, a);
    took("coarse matrices");
    a = std::move(next);
  }
  report_.seconds = timer.seconds();
}

void Hierarchy::apply(const Dense& r, const Dense& z, double scale, Stream& stream) const {
  const Level& finest = *levels_.front();
  const auto* const rows = rows_.as<std::int64_t>();
  dispatch(r.type, [&]<class Outer>(Outer) {
    dispatch(sum_type(options_.inner), [&]<class Inner>(Inner) {
      using F = typename Outer::type;
      using G = typename Inner::type;
      passes_->run(krylov::ConvertVector<F, G>{static_cast<const F*>(r.data), static_cast<G*>(finest.r()), 1 / scale, rows,
                                               nullptr, columns_},
                   r.rows, stream);
      visit(0, stream);
      passes_->run(krylov::ConvertVector<G, F>{static_cast<const G*>(finest.x()), static_cast<F*>(z.data), scale, nullptr,
                                               rows, columns_},
                   r.rows, stream);
    });
  });
}

void Hierarchy::sweep(HostVector<double>& x) const {
  Stream& stream = context_.stream();
  const Level& finest = *levels_.front();
  const ValueType type = sum_type(options_.inner);
  to_device(finest.x(), x, type, stream);
  context_.communicator().check_in();
  finest.begin_at_x(stream);
  visit(0, stream);
  finest.wait(stream);
  const HostVector<double> change = to_host(finest.x(), std::ssize(x), type, stream);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += change[i];
}

void Hierarchy::visit(std::size_t l, Stream& stream) const {
  const SecondVisit* const second = levels_[l]->second_visit();
  if (second == nullptr) return cycle(l, stream);
  second->begin(stream);
  cycle(l, stream);
  second->turn(stream);
  cycle(l, stream);
  second->end(stream);
}

void Hierarchy::cycle(std::size_t l, Stream& stream) const {
  if (l + 1 == levels_.size()) return levels_[l]->solve(stream);
  levels_[l]->go_down(*levels_[l + 1], stream);
  visit(l + 1, stream);
  levels_[l]->come_up(*levels_[l + 1], stream);
}

bool Hierarchy::varies() const {
  return cycle_ == "K" &&
         std::any_of(levels_.begin(), levels_.end(), [](const auto& level) { return level->second_visit() != nullptr; });
}

bool Hierarchy::capturable() const {
  return std::all_of(levels_.begin(), levels_.end(), [](const auto& level) { return level->capturable(); });
}

std::int64_t Hierarchy::device_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& level : levels_) bytes += level->device_bytes();
  for (const DeviceCoarsening& way : on_device_) bytes += way.device_bytes();
  for (const Buffer* const one : {&device_pattern_.rows.start, &device_pattern_.rows.column})
    bytes += static_cast<std::int64_t>(one->bytes());
  if (value_places_) bytes += value_places_->bytes();
  return bytes;
}

std::int64_t Hierarchy::cycle_bytes() const {
  std::int64_t bytes = 0, visits = 1;
  for (const auto& level : levels_) {
    if (const SecondVisit* const second = level->second_visit()) bytes += visits * second->visit_bytes(), visits *= 2;
    bytes += visits * level->visit_bytes();
  }
  return bytes;
}

}  // namespace shardmat::multigrid
