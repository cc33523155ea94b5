#include "runtime/solvers/multigrid/hierarchy.h"

#include <fmt/format.h>

#include <optional>
#include <type_traits>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "kernels/base/timer.h"
#include "runtime/context/context.h"
#include "runtime/matrix/row_plan.h"
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

double sum_over_ranks(Communicator& ranks, std::int64_t value) {
  return static_cast<double>(ranks.all_reduce(value, Reduction::sum));
}

double nonzeros(const NodeRows& a) { return sum_over_ranks(a.rows->ranks(), a.blocks() * a.block_entries()); }

/// The next level of a matrix.
struct Coarser {
  NodeRows p, a;
  Modes modes;
  double strength = 0;
};

/// Adds the time of `work` to a part of the set-up.
template <class Work>
auto timed(MultigridReport& report, const char* part, const Work& work) {
  const Timer timer;
  if constexpr (std::is_void_v<decltype(work())>) {
    work();
    report.parts[part] += timer.seconds();
  } else {
    auto result = work();
    report.parts[part] += timer.seconds();
    return result;
  }
}

double next_strength(double strength) { return strength > kLeastStrength ? strength / 2 : 0; }

/// Nothing if the nodes do not form aggregates. `left`: nonzeros that it may have.
std::optional<Coarser> make_coarser(const NodeRows& a, const Modes& modes, double radius, double strength, double left,
                                    MultigridReport& report) {
  Communicator& ranks = a.rows->ranks();
  const HostVector<double> inverse = inverse_diagonal(a);
  for (;; strength = next_strength(strength)) {
    const bool last = strength == 0;
    const Aggregates aggregates =
        timed(report, "aggregates", [&] { return make_aggregates(strong_couplings(a, strength)); });
    double counts[3] = {static_cast<double>(aggregates.count), static_cast<double>(aggregates.single), 0};
    for (const std::int32_t of : aggregates.of_node) counts[2] += of >= 0 ? 1 : 0;
    ranks.all_reduce(std::span<double>(counts), Reduction::sum);
    if (counts[0] == 0) return std::nullopt;
    const bool too_many = 2 * counts[1] > counts[2] || counts[0] * modes.count > kLeastCoarsening * counts[2] * modes.size;
    if (too_many && !last) continue;
    if (counts[0] * modes.count > kLeastCoarsening * counts[2] * modes.size) return std::nullopt;
    Coarser next;
    timed(report, "prolongation",
          [&] { next.p = smoothed(tentative(aggregates, modes, a.rows, next.modes), a, inverse, kDamping / radius); });
    timed(report, "coarse matrices", [&] { next.a = galerkin(a, next.p); });
    next.strength = strength;
    if (last || nonzeros(next.a) <= left) return next;
  }
}

int node_size(const DistributedMatrix& matrix) { return static_cast<int>(block_jacobi_size(matrix)); }

}  // namespace

Hierarchy::Hierarchy(DistributedMatrix& matrix, const MultigridOptions& options, const PlanRequest& plan,
                     const HeldRows* held, int columns)
    : context_(matrix.context()), options_(options), columns_(columns) {
  const Timer timer;
  context_.communicator().run_agreed([&] { passes_.emplace(context_.device(), columns); });
  build(matrix, plan, held);
  report_.seconds = timer.seconds();
}

void Hierarchy::build(DistributedMatrix& matrix, const PlanRequest& plan, const HeldRows* held) {
  Stream& stream = context_.stream();
  MatrixOptions wanted;
  wanted.type = options_.inner;
  wanted.plan = plan;
  wanted.plan.kernel = "auto", wanted.plan.policy.clear();
  wanted.plan.tune = wanted.plan.measure = false;
  NodeRows a =
      timed(report_, "rows of the finest level", [&] { return take_nodes(matrix, node_size(matrix), held, stream); });
  NearNullSpace space = timed(report_, "near-null space", [&] { return near_null_space(a, options_); });
  Modes modes = std::move(space.modes);
  report_.modes = space.why;
  const double first = nonzeros(a);
  double all = 0;
  std::shared_ptr<const RowMap> map = matrix.y_rows();
  std::optional<NodeRows> p;
  for (;;) {
    auto level = timed(report_, "products", [&] { return std::make_unique<Level>(a, context_, wanted, map, columns_); });
    map = nullptr;
    if (p) timed(report_, "products", [&] { levels_.back()->set_transfer(*p, *level, context_, wanted); });
    const double own = nonzeros(a);
    all += own;
    report_.levels.push_back({a.rows->all() * a.row_size, static_cast<std::int64_t>(own), a.row_size, 0, 0,
                              level->product().row_plans().front().kernel()});
    const bool small = a.rows->all() * a.row_size <= options_.coarse_size;
    levels_.push_back(std::move(level));
    Level& here = *levels_.back();
    if (small) {
      timed(report_, "inverse of the last level", [&] { here.set_inverse(dense_inverse(a, modes), context_, wanted); });
      break;
    }
    const double radius = timed(report_, "largest eigenvalues", [&] { return here.find_radius(stream); });
    here.set_smoother(radius, options_.smoother_degree);
    report_.levels.back().radius = radius;
    if (std::ssize(levels_) >= options_.levels) break;
    std::optional<Coarser> next = make_coarser(a, modes, radius, options_.strength, kMostComplexity * first - all, report_);
    if (!next) break;
    report_.levels.back().strength = next->strength;
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
