#include "runtime/service/engine/resident_solvers.h"

#include <algorithm>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/multigrid/known_nodes.h"
#include "runtime/solvers/solver_settings.h"

namespace shardmat::service {
namespace {

/// What a matrix keeps of solvers that nobody uses.
constexpr std::ptrdiff_t kMostIdle = 4;

SolverOptions options_of(const std::string& settings, std::int64_t columns, const MultigridOptions& known) {
  SolverOptions options;
  take_settings(settings, options);
  options.columns = columns;
  if (!may_use_coordinates(options)) return options;
  MultigridOptions& multigrid = options.preconditioning.multigrid;
  multigrid.coordinates = known.coordinates, multigrid.mid_edges = known.mid_edges;
  if (multigrid.near_null_space == "auto") multigrid.near_null_vectors = known.near_null_vectors;
  return options;
}

}  // namespace

ResidentSolvers::ResidentSolvers(DistributedMatrix& matrix) : matrix_(matrix) {
  if (const NodeFacts* const nodes = matrix.nodes(); nodes != nullptr) {
    known_.coordinates = find_node_coordinates(matrix, *nodes);
    known_.mid_edges = find_mid_edges(matrix, *nodes);
    known_.near_null_vectors = find_near_null_vectors(matrix, *nodes);
  }
  matrix.know_nodes(nullptr);
}

std::unique_ptr<Solver> ResidentSolvers::make(const std::string& settings, std::int64_t columns) {
  const SolverOptions options =
      matrix_.context().communicator().run_agreed([&] { return options_of(settings, columns, known_); });
  try {
    return std::make_unique<Solver>(matrix_, options);
  } catch (const AgreedError& error) {
    const bool idle = std::any_of(entries_.begin(), entries_.end(), [](const Entry& entry) { return !entry.used; });
    if (error.kind() != ErrorKind::resources || !idle) throw;
  }
  drop_idle();
  return std::make_unique<Solver>(matrix_, options);
}

ResidentSolvers::Use ResidentSolvers::use(const std::string& settings, std::int64_t columns) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.settings == settings && entry.columns == columns;
  });
  const std::uint64_t version = matrix_.values_version();
  if (found == entries_.end()) {
    std::unique_ptr<Solver> made = make(settings, columns);
    entries_.push_front({settings, columns, std::move(made), version, true});
    drop_oldest();
    return {entries_.front().solver.get(), false};
  }
  if (found->used) throw AgreedError(ErrorKind::internal, "another solve uses this solver");
  entries_.splice(entries_.begin(), entries_, found);
  Entry& entry = entries_.front();
  entry.used = true;  // other jobs may get their turn meanwhile, and drop what is idle
  if (entry.version != version) {
    try {
      entry.solver->refresh();
    } catch (...) {  // the new values may have another null space, say: what is left of it fits neither
      drop(entry.solver.get());
      throw;
    }
    entry.version = version;
  }
  return {entry.solver.get(), true};
}

void ResidentSolvers::release(const Solver* solver) {
  for (Entry& entry : entries_)
    if (entry.solver.get() == solver) entry.used = false;
  drop_oldest();
}

void ResidentSolvers::drop(const Solver* solver) {
  entries_.remove_if([&](const Entry& entry) { return entry.solver.get() == solver; });
}

void ResidentSolvers::drop_idle() {
  entries_.remove_if([](const Entry& entry) { return !entry.used; });
}

void ResidentSolvers::drop_oldest() {
  std::ptrdiff_t idle = 0;
  for (auto entry = entries_.begin(); entry != entries_.end();)
    if (!entry->used && ++idle > kMostIdle) entry = entries_.erase(entry);
    else ++entry;
}

std::vector<HeldSolver> ResidentSolvers::held() const {
  std::vector<HeldSolver> held;
  for (const auto& [settings, columns, solver, version, used] : entries_)
    held.push_back({settings, columns, solver->options().solver, solver->options().preconditioner,
                    solver->preconditioner().describe(), solver->device_bytes()});
  return held;
}

}  // namespace shardmat::service
