// What a method demands of the options of a solver.
//
// Threads: any thread; nothing is collective.
#pragma once

#include "runtime/solvers/loop/method.h"
#include "runtime/solvers/loop/solver_options.h"

namespace shardmat {

class DistributedMatrix;

/// The options, where a method that takes only one preconditioner, and this preconditioner, choose each other.
SolverOptions paired(SolverOptions options);
/// Throws Error(usage) for options that no method takes with this matrix.
void require_sensible(const SolverOptions& options, const DistributedMatrix& matrix);
/// Throws Error(usage) for options that this method does not take; what a preconditioner chooses is left aside.
void require_takes(const MethodEntry& method, const SolverOptions& options);
bool takes(const MethodEntry& method, const SolverOptions& options);
/// Throws Error(usage) for another preconditioner than the only one that the method takes.
void require_pair(const MethodEntry& method, const SolverOptions& options);

}  // namespace shardmat
