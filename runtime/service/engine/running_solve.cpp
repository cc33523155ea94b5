#include "runtime/service/engine/running_solve.h"

#include <algorithm>
#include <string>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/timer.h"
#include "runtime/context/context_scope.h"
#include "runtime/solvers/loop/reason.h"

namespace shardmat::service {
namespace {

/// Ends the thread of a solve that is left where it is.
struct Abandoned {};

}  // namespace

RunningSolve::RunningSolve(Solver& solver, DistributedVector b, DistributedVector x)
    : solver_(solver), b_(std::move(b)), x_(std::move(x)), thread_([this] { run(); }) {}

RunningSolve::~RunningSolve() {
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true, solves_ = true;
  }
  turn_.notify_all();
  thread_.join();
}

Progress RunningSolve::advance(std::int64_t pauses, bool ends) {
  const Timer timer;
  std::unique_lock lock(mutex_);
  progress_ = {};
  if (!ended_) {
    left_ = pauses, ends_ = ends;
    solves_ = true;
    turn_.notify_all();
    turn_.wait(lock, [&] { return !solves_; });
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  progress_.ended = ended_;
  progress_.seconds = timer.seconds();
  if (x_.context().communicator().rank() != 0) progress_.residuals.clear();
  return std::move(progress_);
}

void RunningSolve::run() noexcept {
  std::unique_lock lock(mutex_);
  turn_.wait(lock, [&] { return solves_; });
  try {
    if (abandoned_) throw Abandoned{};
    const ContextScope scope(x_.context());
    SolveControl control;
    control.monitor = [this](std::int64_t iteration, const std::vector<double>& norms, const std::vector<double>&) {
      progress_.residuals.push_back({iteration, norms.empty() ? 0 : *std::max_element(norms.begin(), norms.end())});
    };
    control.pause = [&] {
      ++progress_.pauses;
      if (!ends_ && --left_ > 0) return true;
      if (ends_) return false;
      solver_.product().wait(x_.context().stream());
      solves_ = false;
      turn_.notify_all();
      turn_.wait(lock, [&] { return solves_; });
      if (abandoned_) throw Abandoned{};
      return !ends_;
    };
    describe(solver_.solve(b_, x_, control));
  } catch (const Abandoned&) {
  } catch (...) {
    error_ = std::current_exception();
  }
  ended_ = true, solves_ = false;
  turn_.notify_all();
}

void RunningSolve::describe(const SolveResult& result) {
  for (const shardmat::SolvedColumn& column : result.columns) {
    progress_.columns.push_back({std::string(name(column.reason)), converged(column.reason), column.iterations,
                                 column.norm_of_b, column.residual, column.true_residual, column.backward_error});
    if (!converged(column.reason) && progress_.explanation.empty()) progress_.explanation = result.explanation(column);
  }
  progress_.method = solver_.options().solver, progress_.preconditioner = solver_.options().preconditioner;
}

}  // namespace shardmat::service
