#include "runtime/service/engine/solves.h"

#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/timer.h"
#include "runtime/context/context_scope.h"

namespace shardmat::service {

DistributedVector Solves::vector_of(const ResidentMatrix& matrix, std::int64_t columns) const {
  return DistributedVector(matrix.y_rows(), matrix.type(), columns);
}

SolveBegun Solves::begin(const Solve& command, ResidentMatrix& matrix) {
  const ContextScope scope(matrix.context());
  ResidentSolvers& solvers = matrix.solvers();
  DistributedVector b = vector_of(matrix, command.columns), x = vector_of(matrix, command.columns);
  vectors_.take(command.b, *b.map(), b.view(), memories_);
  if (command.has_guess) vectors_.take(command.guess, *x.map(), x.view(), memories_);
  const Timer timer;
  const ResidentSolvers::Use use = solvers.use(command.settings, command.columns);
  SolveBegun begun;
  begun.set_up = timer.seconds(), begun.resident = use.resident;
  try {
    begun.x = vectors_.make({command.vector, command.matrix, true, 0, command.columns, matrix.type()}, matrix.y_rows());
  } catch (const AgreedError&) {
    solvers.release(use.solver);
    throw;
  }
  begun.solver_bytes = solvers.device_bytes();
  begun.method = use.solver->options().solver, begun.preconditioner = use.solver->options().preconditioner;
  begun.note = use.solver->preconditioner().describe();
  running_[command.solve] = {command.matrix, command.vector, &matrix,
                             std::make_unique<RunningSolve>(*use.solver, std::move(b), std::move(x))};
  return begun;
}

Progress Solves::advance(const Slice& command) {
  const auto found = running_.find(command.solve);
  if (found == running_.end()) throw AgreedError(ErrorKind::internal, "the ranks do not have this solve");
  RunningSolve& solve = *found->second.solve;
  const ContextScope scope(found->second.on->context());
  Progress progress;
  try {
    progress = solve.advance(command.pauses, command.ends);
  } catch (const AgreedError&) {
    vectors_.drop({found->second.vector});
    forget(found);
    throw;
  }
  const DistributedVector& x = solve.x();
  if (command.keeps || progress.ended) vectors_.give(x.view(), *x.map(), command.x, memories_);
  if (!progress.ended) return progress;
  const Dense to = vectors_.view(found->second.vector, *x.map(), x.type(), x.columns());
  Stream& stream = x.context().stream();
  copy_on_device(to.data, x.view().data, static_cast<std::size_t>(x.local_rows() * x.columns()) * size_of(x.type()), stream);
  stream.synchronize();
  forget(found);
  return progress;
}

void Solves::cancel(const Cancel& command) {
  const auto found = running_.find(command.solve);
  if (found == running_.end()) return;
  const ContextScope scope(found->second.on->context());
  vectors_.drop({found->second.vector});
  found->second.solve->advance(1, true);
  forget(found);
}

void Solves::drop_all(std::uint64_t matrix) {
  std::erase_if(running_, [&](const auto& one) {
    if (one.second.matrix != matrix) return false;
    vectors_.drop({one.second.vector});
    return true;
  });
}

void Solves::forget(std::map<std::uint64_t, Running>::iterator solve) {
  solve->second.on->solvers().release(&solve->second.solve->solver());
  running_.erase(solve);
}

}  // namespace shardmat::service
