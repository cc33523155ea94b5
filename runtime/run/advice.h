// Advice after a slow solve: another preconditioner that was tried on the same system, and needed fewer iterations.
//
// Threads: as Solver. Everything is collective and gives the same result on all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/solvers/solver.h"

namespace shardmat {

class VectorSource;

struct Advice {
  std::string preconditioner, note;  ///< its name, and what was built for it
  std::int64_t iterations = 0;       ///< that were tried
  std::int64_t instead_of = 0;       ///< iterations of the solve that reduced the residual as far
  bool at_least = false;             ///< the solve never did: these are all of its iterations
};

/// What was tried, if anything was; `failure` says why it could not be.
struct AdviceTrial {
  bool tried = false;
  std::string failure;
  std::optional<Advice> advice;  ///< only if it takes 1.3 times fewer iterations
};

/// True if a solve with these options may be followed by advise(), which needs the host rows of the matrix: its norm of the
/// residual is the unpreconditioned one, and its preconditioner is none or jacobi.
bool may_advise(const SolverOptions& options);

/// After a solve of 200 iterations or more: tries block_jacobi if the pattern shows several unknowns a node, else jacobi,
/// from the first x. It is tried only if making it should take a twentieth of the solve's time at most, which its search for
/// the diagonal in the host rows decides; for so many iterations that they take another twentieth. A timer ends it, too. The
/// iteration at which the solve reached the trial's best residual tells how many are saved. `guess`: where x began.
/// `control`: its stop ends the trial.
AdviceTrial advise(Solver& solver, DistributedMatrix& matrix, const DistributedVector& b, const VectorSource& guess,
                   const SolveResult& result, const SolveControl& control);

}  // namespace shardmat
