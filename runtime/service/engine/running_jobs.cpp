#include "runtime/service/engine/running_jobs.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/vector.h"
#include "runtime/context/context_scope.h"

namespace shardmat::service {
namespace {

std::uint64_t bytes_of_column(const DistributedVector& block) {
  return static_cast<std::uint64_t>(block.map()->size()) * size_of(block.type());
}

Place next_column(Place first, std::int64_t column, std::uint64_t bytes) {
  first.offset += static_cast<std::uint64_t>(column) * bytes;
  return first;
}

}  // namespace

/// Columns of all parts, then zeros; or `columns` of the one part.
DistributedVector RunningJobs::make_block(const Begin& command, const ResidentMatrix& matrix, const Place JobPart::*first,
                                          std::int64_t columns) const {
  DistributedVector block(matrix.y_rows(), matrix.type(), columns > 0 ? columns : command.width);
  std::vector<Place> places;
  for (const JobPart& part : command.parts)
    for (std::int64_t j = 0; j < (columns > 0 ? columns : part.columns); ++j)
      places.push_back(next_column(part.*first, j, bytes_of_column(block)));
  vectors_.take(places, *block.map(), block.view(), memories_);
  return block;
}

Begun RunningJobs::begin(const Begin& command, ResidentMatrix& matrix, ResidentMatrix* mass) {
  const ContextScope scope(matrix.context());
  matrix.solvers();  // it is solvable
  const auto kind = std::find_if(kinds_.begin(), kinds_.end(), [&](const auto& one) { return one.name == command.kind; });
  if (kind == kinds_.end()) throw AgreedError(ErrorKind::internal, "the ranks do not know this kind of job");
  JobInputs inputs{command.settings, matrix, mass, command.width, {}, {}};
  if (command.has_b) inputs.b.emplace(make_block(command, matrix, &JobPart::b, 0));
  if (command.has_guess) inputs.guess.emplace(make_block(command, matrix, &JobPart::guess, command.guess_columns));
  Begun begun;
  try {
    for (const JobPart& part : command.parts)
      begun.x.push_back(vectors_.make({part.vector, command.matrix, true, 0, part.columns, matrix.type()}, matrix.y_rows()));
  } catch (const AgreedError&) {
    drop_vectors(command);
    throw;
  }
  running_[command.job] = {command, &matrix, std::make_unique<RunningJob>(matrix.context(), kind->make(std::move(inputs)))};
  return begun;
}

Progress RunningJobs::advance(const Slice& command) {
  const auto found = running_.find(command.job);
  if (found == running_.end()) throw AgreedError(ErrorKind::internal, "the ranks do not have this job");
  Running& running = found->second;
  const ContextScope scope(running.on->context());
  Progress progress;
  try {
    progress = running.job->advance(command.pauses, command.ends);
  } catch (const AgreedError&) {
    drop_vectors(running.begun);
    running_.erase(found);
    throw;
  }
  const bool has_x = running.job->is_set_up() && running.job->work().x() != nullptr;
  if (has_x && (command.keeps || progress.ended)) give_x(running, command.x);
  if (progress.ended && !progress.columns.empty()) keep_x(running);
  if (progress.ended && progress.columns.empty()) drop_vectors(running.begun);
  if (progress.is_set_up && (progress.ended || !std::exchange(running.told_solvers, true)))
    progress.solvers = running.on->solvers().held();
  if (progress.ended) running_.erase(found);
  return progress;
}

/// To the arena.
void RunningJobs::give_x(const Running& running, const std::vector<std::uint64_t>& to) {
  if (to.empty()) return;
  const DistributedVector& x = *running.job->work().x();
  std::vector<Place> places;
  for (std::size_t i = 0; i < running.begun.parts.size(); ++i)
    for (std::int64_t j = 0; j < running.begun.parts[i].columns; ++j)
      places.push_back(next_column({0, to.at(i), 0}, j, bytes_of_column(x)));
  vectors_.give(x.view(), *x.map(), places, memories_);
}

/// As the vectors of the parts.
void RunningJobs::keep_x(const Running& running) {
  const DistributedVector& x = *running.job->work().x();
  Stream& stream = x.context().stream();
  const std::size_t entry = size_of(x.type()), row = static_cast<std::size_t>(x.columns()) * entry;
  const auto* from = static_cast<const std::byte*>(x.view().data);
  for (const JobPart& part : running.begun.parts) {
    const std::size_t bytes = static_cast<std::size_t>(part.columns) * entry;
    const Dense to = vectors_.view(part.vector, *x.map(), x.type(), part.columns);
    copy_rows(bytes, x.local_rows(), from, row, to.data, bytes, stream);
    from += bytes;
  }
  stream.synchronize();
}

void RunningJobs::cancel(const Cancel& command) {
  const auto found = running_.find(command.job);
  if (found == running_.end()) return;
  Running& running = found->second;
  const ContextScope scope(running.on->context());
  try {
    if (running.job->is_set_up() && running.job->work().ends_soon()) running.job->advance(1, true);
  } catch (const AgreedError&) {  // nobody asks for this job any more
  }
  drop_vectors(running.begun);
  running_.erase(found);
}

void RunningJobs::drop_all(std::uint64_t matrix) {
  std::erase_if(running_, [&](const auto& one) {
    if (one.second.begun.matrix != matrix && one.second.begun.mass != matrix) return false;
    drop_vectors(one.second.begun);
    return true;
  });
}

void RunningJobs::drop_vectors(const Begin& begun) {
  for (const JobPart& part : begun.parts) vectors_.drop({part.vector});
}

}  // namespace shardmat::service
