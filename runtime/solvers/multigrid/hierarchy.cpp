#include "runtime/solvers/multigrid/hierarchy.h"

#include <optional>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/timer.h"
#include "runtime/context/context.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/multigrid/aggregate.h"
#include "runtime/solvers/multigrid/coarse.h"
#include "runtime/solvers/multigrid/galerkin.h"
#include "runtime/solvers/multigrid/near_null_space.h"
#include "runtime/solvers/multigrid/prolong.h"

namespace shardmat::multigrid {
namespace {

constexpr double kMostComplexity = 2;
/// A level that keeps more of the unknowns is not worth having.
constexpr double kLeastCoarsening = 0.8;
/// P is smoothed by 4/(3·radius), Vaněk, Mandel and Brezina.
constexpr double kDamping = 4.0 / 3;
constexpr double kLeastStrength = 0.01;

/// Of all ranks, stored zeros of blocks included. Collective.
double nonzeros(const NodeRows& a) {
  return static_cast<double>(a.rows->ranks().all_reduce(a.blocks() * a.block_entries(), Reduction::sum));
}

/// The next level of a matrix.
struct Coarser {
  NodeRows p, a;
  Modes modes;
};

double next_strength(double strength) { return strength > kLeastStrength ? strength / 2 : 0; }

/// Nothing if the nodes do not form aggregates. `inverse`: inverse_diagonal(a). `left`: nonzeros that it may have.
std::optional<Coarser> make_coarser(const NodeRows& a, const HostVector<double>& inverse, const Modes& modes, double radius,
                                    double strength, double left) {
  Communicator& ranks = a.rows->ranks();
  for (;; strength = next_strength(strength)) {
    const bool last = strength == 0;
    const Aggregates aggregates = make_aggregates(strong_couplings(a, strength));
    double counts[3] = {static_cast<double>(aggregates.count), static_cast<double>(aggregates.single), 0};
    for (const std::int32_t of : aggregates.of_node) counts[2] += of >= 0 ? 1 : 0;
    ranks.all_reduce(std::span<double>(counts), Reduction::sum);
    if (counts[0] == 0) return std::nullopt;
    const bool too_many = 2 * counts[1] > counts[2] || counts[0] * modes.count > kLeastCoarsening * counts[2] * modes.size;
    if (too_many && !last) continue;
    if (counts[0] * modes.count > kLeastCoarsening * counts[2] * modes.size) return std::nullopt;
    Coarser next;
    next.p = smoothed(tentative(aggregates, modes, a.rows, next.modes), a, inverse, kDamping / radius);
    next.a = galerkin(a, next.p);
    if (last || nonzeros(next.a) <= left) return next;
  }
}

}  // namespace

Hierarchy::Hierarchy(DistributedMatrix& matrix, const MultigridOptions& options, const PlanRequest& plan,
                     const HeldRows* held, int columns)
    : context_(matrix.context()), options_(options), columns_(columns) {
  const Timer timer;
  context_.communicator().run_agreed([&] { passes_.emplace(context_.device(), columns); });
  build(matrix, plan, held);
  report_.bytes = context_.communicator().all_reduce(device_bytes(), Reduction::sum);
  report_.seconds = timer.seconds();
}

void Hierarchy::build(DistributedMatrix& matrix, const PlanRequest& plan, const HeldRows* held) {
  Stream& stream = context_.stream();
  MatrixOptions wanted;
  wanted.type = options_.inner;
  wanted.plan = plan;
  wanted.plan.kernel = "auto", wanted.plan.policy.clear();
  wanted.plan.tune = wanted.plan.measure = false;
  NodeRows a = take_nodes(matrix, static_cast<int>(block_jacobi_size(matrix)), held, stream);
  auto [modes, why] = near_null_space(a, options_);
  report_.modes = why;
  const double first = nonzeros(a);
  double all = 0;
  std::shared_ptr<const RowMap> map = matrix.y_rows();
  std::optional<NodeRows> p;
  for (;;) {
    const HostVector<double> inverse = inverse_diagonal(a);
    auto level = std::make_unique<Level>(a, inverse, context_, wanted, map, columns_);
    map = nullptr;
    if (p) levels_.back()->set_transfer(*p, *level, context_, wanted);
    const double here_nonzeros = nonzeros(a);
    all += here_nonzeros;
    const std::int64_t unknowns = a.rows->all() * a.row_size;
    report_.levels.push_back({unknowns, static_cast<std::int64_t>(here_nonzeros), 0});
    levels_.push_back(std::move(level));
    Level& here = *levels_.back();
    if (unknowns <= options_.coarse_size) {
      here.set_inverse(dense_inverse(a, modes), context_, wanted);
      break;
    }
    const double radius = here.find_radius(stream);
    report_.levels.back().radius = radius;
    here.set_smoother(radius, options_.smoother_degree);
    if (std::ssize(levels_) >= options_.levels) break;
    std::optional<Coarser> next = make_coarser(a, inverse, modes, radius, options_.strength, kMostComplexity * first - all);
    if (!next) break;
    a = std::move(next->a), modes = std::move(next->modes), p = std::move(next->p);
  }
  report_.operator_complexity = first > 0 ? all / first : 1;
}

void Hierarchy::apply(const Dense& r, const Dense& z, double scale, Stream& stream) const {
  const Dense in = levels_.front()->r(), out = levels_.front()->x();
  const auto convert = [&](const Dense& from, const Dense& to, double factor) {
    dispatch(from.type, [&]<class From>(From) {
      dispatch(to.type, [&]<class To>(To) {
        using F = typename From::type;
        using G = typename To::type;
        passes_->run(krylov::ConvertVector<F, G>{static_cast<const F*>(from.data), static_cast<G*>(to.data), factor},
                     from.rows, stream);
      });
    });
  };
  convert(r, in, 1 / scale);
  for (std::size_t l = 0; l + 1 < levels_.size(); ++l) levels_[l]->go_down(*levels_[l + 1], stream);
  levels_.back()->solve(stream);
  for (std::size_t l = levels_.size() - 1; l-- > 0;) levels_[l]->come_up(*levels_[l + 1], stream);
  convert(out, z, scale);
}

std::int64_t Hierarchy::device_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& level : levels_) bytes += level->device_bytes();
  return bytes;
}

std::int64_t Hierarchy::cycle_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& level : levels_) bytes += level->cycle_bytes();
  return bytes;
}

}  // namespace shardmat::multigrid
