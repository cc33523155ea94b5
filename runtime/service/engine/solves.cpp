#include "runtime/service/engine/solves.h"

#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/timer.h"
#include "runtime/context/context_scope.h"
#include "runtime/service/engine/column_transfer.h"

namespace shardmat::service {
namespace {

std::vector<Place> places_of(const DistributedVector& vector, std::uint64_t offset) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(vector.rows()) * size_of(vector.type());
  std::vector<Place> places;
  for (std::int64_t j = 0; j < vector.columns(); ++j)
    places.push_back({0, offset + static_cast<std::uint64_t>(j) * bytes, 0});
  return places;
}

std::uint64_t column_bytes(const DistributedVector& vector) {
  return static_cast<std::uint64_t>(vector.rows()) * size_of(vector.type());
}

}  // namespace

DistributedVector Solves::vector_of(const ResidentMatrix& matrix, std::int64_t columns) const {
  return DistributedVector(matrix.y_rows(), matrix.type(), columns);
}

void Solves::read(std::uint64_t offset, const DistributedVector& vector) {
  const std::vector<Place> places = places_of(vector, offset);
  memories_.fetch(places, *vector.map(), vector.type());
  Stream& stream = vector.context().stream();
  ColumnTransfer transfer(stream);
  vector.context().communicator().run_agreed([&] { transfer.reserve(vector.view(), *vector.map()); });
  std::vector<const std::byte*> columns;
  for (const Place& place : places) columns.push_back(memories_.at(place, column_bytes(vector)).data());
  transfer.take(columns, *vector.map(), vector.view());
  stream.synchronize();
}

void Solves::write(const DistributedVector& vector, std::uint64_t offset) {
  const std::vector<Place> places = places_of(vector, offset);
  ColumnTransfer transfer(vector.context().stream());
  vector.context().communicator().run_agreed([&] { transfer.reserve(vector.view(), *vector.map()); });
  std::vector<UnpackedColumn> columns;
  for (const Place& place : places) columns.push_back({memories_.at(place, column_bytes(vector)).data(), 1, 0});
  transfer.give(vector.view(), *vector.map(), columns);
  memories_.deliver(places, *vector.map(), vector.type());
}

SolveBegun Solves::begin(const Solve& command, ResidentMatrix& matrix) {
  const ContextScope scope(matrix.context());
  ResidentSolvers& solvers = matrix.solvers();
  DistributedVector b = vector_of(matrix, command.columns), x = vector_of(matrix, command.columns);
  read(command.b, b);
  if (command.has_guess) read(command.guess, x);
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
  if (command.keeps || progress.ended) write(solve.x(), command.x);
  if (!progress.ended) return progress;
  const DistributedVector& x = solve.x();
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
