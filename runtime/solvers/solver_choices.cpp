// What a solver does when its first choice fails: the next one goes on, or begins anew.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/solvers/loop/attainable.h"
#include "runtime/solvers/loop/attempts.h"
#include "runtime/solvers/loop/headway.h"
#include "runtime/solvers/method_choice.h"
#include "runtime/solvers/solver.h"

namespace shardmat {
namespace {

/// The method broke down; not at the end of the iterations, nor because somebody ended it.
bool failed(const SolveResult& result) {
  return std::any_of(result.columns.begin(), result.columns.end(), [](const SolvedColumn& column) {
    return !converged(column.reason) && column.reason != SolveReason::diverged_iterations &&
           column.reason != SolveReason::interrupted && column.reason != SolveReason::diverged_attainable_accuracy &&
           column.reason != SolveReason::least_squares;
  });
}

bool is_least_squares(const SolveResult& result) {
  return std::any_of(result.columns.begin(), result.columns.end(),
                     [](const SolvedColumn& column) { return column.reason == SolveReason::least_squares; });
}

/// `found` converged, or refutes that no x makes the residuals of `least_squares` smaller.
bool comes_nearer(const SolveResult& found, const SolveResult& least_squares) {
  constexpr double kNearer = 0.5;
  bool nearer = true;
  for (std::size_t j = 0; j < found.columns.size(); ++j)
    nearer = nearer && (converged(found.columns[j].reason) ||
                        found.columns[j].true_residual <= kNearer * least_squares.columns[j].true_residual);
  return nearer;
}

bool was_interrupted(const SolveResult& result) {
  return std::any_of(result.columns.begin(), result.columns.end(),
                     [](const SolvedColumn& column) { return column.reason == SolveReason::interrupted; });
}

std::string_view reason_of(const SolveResult& result) {
  const auto column =
      std::find_if(result.columns.begin(), result.columns.end(), [](const SolvedColumn& c) { return !converged(c.reason); });
  return column == result.columns.end() ? "" : result.explanation(*column);
}

}  // namespace

/// Takes a choice, or the next one whose preconditioner can be made.
void Solver::take_first_possible(std::size_t choice) {
  for (;; ++choice) {
    try {
      return take(choice);
    } catch (const AgreedError& error) {
      if (choice + 1 == choices_.size() || error.kind() == ErrorKind::rank_lost) throw;
      choices_[choice + 1].why = fmt::format("{} cannot be made: {}", choices_[choice].preconditioner, error.what());
    }
  }
}

/// What the norm of each column's residual must come down to; nothing without a tolerance, or in other norms.
std::vector<double> Solver::targets(const DistributedVector& b) const {
  if (options_.residual_norm != ResidualNorm::unpreconditioned || (*options_.rtol <= 0 && options_.atol <= 0)) return {};
  const DistributedVector zeros(b.map(), b.type(), b.columns());
  std::vector<double> found = norms_of_residual(*product_, b, zeros, projector_.get(), matrix_.context().stream());
  for (double& norm : found) norm = std::max(*options_.rtol * norm, options_.atol);
  return found;
}

/// Takes the factors in place of a choice without headway. Where they cannot be made, all is as before, without them.
bool Solver::take_factors(std::size_t factors, const std::string& ended, std::vector<std::string>& fall_backs) {
  const std::size_t before = choice_;
  try {
    take(factors);
    choices_[choice_].why = ended;
    fall_backs.push_back(ended + "; the factors (direct) went on");
    return true;
  } catch (const AgreedError& error) {
    if (error.kind() == ErrorKind::rank_lost) throw;
    fall_backs.push_back(fmt::format("{}; the factors (direct) cannot be made: {}", ended, error.what()));
    choices_.erase(choices_.begin() + static_cast<std::ptrdiff_t>(factors));
    take(before);
    return false;
  }
}

/// After a least-squares solution in f32: rounding errors may have made the matrix look singular. Factors tell, from the
/// first x on; where they come no nearer, it is a least-squares solution, and stays.
SolveResult Solver::solve_by_factors(std::size_t factors, SolveResult least_squares, const DistributedVector& first_x,
                                     const DistributedVector& b, DistributedVector& x, const SolveControl& control) {
  const std::string ended = fmt::format("{} with {} ended after {} iterations: {}", options_.solver, options_.preconditioner,
                                        least_squares.attempts.back().iterations, reason_of(least_squares));
  const std::size_t before = choice_;
  if (!take_factors(factors, ended, least_squares.fall_backs)) return least_squares;
  Stream& stream = matrix_.context().stream();
  DistributedVector least_x(x.map(), x.type(), x.columns());
  copy_on_device(least_x.view().data, x.view().data, product_->y_bytes(), stream);
  copy_on_device(x.view().data, first_x.view().data, product_->y_bytes(), stream);
  SolverOptions options = options_;
  options.max_iterations -= least_squares.iterations;
  SolveResult result = run(*method_, *preconditioner_, options, b, x, counting_from(least_squares.iterations, control));
  if (comes_nearer(result, least_squares)) {
    append(std::move(result), least_squares);
    return least_squares;
  }
  copy_on_device(x.view().data, least_x.view().data, product_->y_bytes(), stream);
  take(before);
  least_squares.fall_backs.back() += ", came no nearer, and x is the least-squares solution again";
  return least_squares;
}

/// Where a choice fails, the next one goes on.
SolveResult Solver::solve_by_choices(const DistributedVector& b, DistributedVector& x, const SolveControl& control) {
  if (choice_ + 1 == choices_.size()) return run(*method_, *preconditioner_, options_, b, x, control);
  DistributedVector first_x(x.map(), x.type(), x.columns());
  copy_on_device(first_x.view().data, x.view().data, product_->y_bytes(), matrix_.context().stream());
  // On a GPU the time decides when the host looks, and no bit may depend on it.
  const bool watches = matrix_.context().device().backend == Backend::host;
  SolveResult all;
  bool indefinite = false;  // found by a method that cannot go on then
  constexpr std::int64_t kManyIterations = 200;
  const std::vector<double> wanted = watches ? targets(b) : std::vector<double>();
  for (;;) {
    const std::size_t factors = choices_.back().preconditioner == "direct" ? choices_.size() - 1 : choice_;
    Headway headway(choices_[choice_].patience, factors > choice_ ? wanted : std::vector<double>());
    SolverOptions options = options_;
    options.max_iterations -= all.iterations;
    const SolveControl counting = counting_from(all.iterations, control);
    SolveResult result = run(*method_, *preconditioner_, options, b, x,
                             watches && choice_ + 1 < choices_.size() ? headway.watch(counting) : counting);
    if (all.columns.empty()) all = std::move(result);
    else append(std::move(result), all);
    const bool is_last = choice_ + 1 == choices_.size() || all.iterations >= options_.max_iterations;
    const bool goes_on = headway.is_stuck() || (headway.is_slow() && was_interrupted(all));
    if (is_last || all.converged()) return all;
    if (is_least_squares(all) && factors > choice_ && matrix_.type() == ValueType::f32 && !projector_)
      return solve_by_factors(factors, std::move(all), first_x, b, x, control);
    if (!goes_on && !failed(all)) return all;
    const std::string ended = fmt::format("{} with {} ended after {} iterations: ", options_.solver, options_.preconditioner,
                                          all.attempts.back().iterations);
    const std::string why =
        headway.is_stuck() ? fmt::format("the residual was not halved in {} iterations", headway.patience())
        : goes_on          ? fmt::format("their rate predicts {}{} more", headway.left() < Headway::kMost ? "" : "at least ",
                                         human_count(headway.left()))
                           : std::string(reason_of(all));
    if (goes_on && factors > choice_ && (headway.is_slow() || all.iterations >= kManyIterations)) {
      if (take_factors(factors, ended + why, all.fall_backs) || !headway.is_stuck()) continue;
    }
    indefinite = indefinite || std::any_of(all.columns.begin(), all.columns.end(), [](const SolvedColumn& column) {
                   return column.reason == SolveReason::diverged_indefinite_matrix;
                 });
    const std::size_t before = choice_;
    std::size_t next = before + 1;
    const auto is_in_vain = [&](const SolverChoice& c) {
      return (indefinite && c.method->demands == Demands::positive_definite) || (c.adaptive && !goes_on);
    };
    while (next + 1 < choices_.size() && is_in_vain(choices_[next])) ++next;
    try {
      take_first_possible(next);
    } catch (const AgreedError& error) {
      if (error.kind() == ErrorKind::rank_lost) throw;
      all.fall_backs.push_back(fmt::format("{}{}; nothing else can be made: {}", ended, why, error.what()));
      take(before);
      return all;
    }
    if (!goes_on) copy_on_device(x.view().data, first_x.view().data, product_->y_bytes(), matrix_.context().stream());
    choices_[choice_].why = ended + why;
    all.fall_backs.push_back(fmt::format(
        "{}{}; {} with {}{} {}", ended, why, options_.solver, options_.preconditioner,
        choices_[choice_].adaptive ? ", with adaptive vectors as its near null space (coordinates would help more)," : "",
        goes_on ? "went on" : "began anew"));
  }
}

}  // namespace shardmat
