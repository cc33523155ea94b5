// The solvers of a resident matrix: set up once for each choice of settings, and refreshed after new values.
//
// Threads: as Solver. Collective unless said otherwise.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "runtime/matrix/distributed_matrix.h"
#include "runtime/service/wire/command.h"
#include "runtime/solvers/loop/preconditioner_options.h"
#include "runtime/solvers/solver.h"

namespace shardmat::service {

class ResidentSolvers {
 public:
  /// Reads what the matrix's source knows of the nodes, so that its file can be closed. REQUIRES: the matrix outlives it.
  explicit ResidentSolvers(DistributedMatrix& matrix);
  ResidentSolvers(const ResidentSolvers&) = delete;
  ResidentSolvers& operator=(const ResidentSolvers&) = delete;

  /// A solver that one solve uses, until drop() or the end of this object.
  struct Use {
    Solver* solver = nullptr;
    bool resident = false;  ///< it was there
  };
  /// Throws on all ranks Error(usage) for settings that do not fit the matrix, and what Solver throws. Where memory is
  /// missing, the other solvers that nobody uses are dropped first. REQUIRES: no solve uses a solver of these settings.
  Use use(const std::string& settings, std::int64_t columns);
  /// The solve has ended. Not collective.
  void release(const Solver* solver);
  /// Of a solver whose values or state are not to be relied on. Not collective.
  void drop(const Solver* solver);
  /// Frees those that no solve uses. Not collective.
  void drop_idle();
  /// With their bytes on this rank. Not collective.
  std::vector<HeldSolver> held() const;

  DistributedMatrix& matrix() const { return matrix_; }
  /// Coordinates, middle nodes and near-null vectors of the matrix's source.
  const MultigridOptions& known_nodes() const { return known_; }

 private:
  struct Entry {
    std::string settings;
    std::int64_t columns = 1;
    std::unique_ptr<Solver> solver;
    std::uint64_t version = 0;  ///< of the values that it was made or refreshed for
    bool used = false;
  };
  std::unique_ptr<Solver> make(const std::string& settings, std::int64_t columns);
  void drop_oldest();

  DistributedMatrix& matrix_;
  MultigridOptions known_;    ///< its coordinates, middle nodes and near-null vectors are those of the source
  std::list<Entry> entries_;  ///< the one that was used last is the first
};

}  // namespace shardmat::service
