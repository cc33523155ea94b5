// Modes that the matrix maps to 0: motions of connected bodies without supports.
//
// Threads: one thread of each rank; collective.
#pragma once

#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/held_rows.h"
#include "runtime/solvers/loop/null_vectors.h"
#include "runtime/solvers/loop/preconditioner_options.h"
#include "runtime/solvers/multigrid/node_rows.h"
#include "runtime/solvers/multigrid/prolong.h"

namespace shardmat::multigrid {

/// Of each body, the combinations v of `modes` with ‖A·v‖₂ ≤ allowed · ‖|A|·|v|‖₂. A body: nodes that couplings connect.
/// Nothing is looked for if there are more than NullVectors::kMostBodies bodies; `too_many` is set then, and where more than
/// NullVectors::kMost vectors are found. Collective.
NullVectors free_modes(const NodeRows& a, const Modes& modes, double allowed);

/// Whether a body may have free modes: `sums` are Vᵀ·A·V and Vᵀ·V of its nodes for `count` modes V, `largest` is the largest
/// magnitude on its diagonal. Not collective.
bool may_move_freely(const double* sums, int count, double largest);

/// What rounding errors of a matrix allow in free_modes().
double allowed_force(ValueType type);

/// The free modes of a symmetric matrix; `options` say which modes are known. Errors as near_null_space(). Collective.
NullVectors free_modes(DistributedMatrix& matrix, const MultigridOptions& options, const HeldRows* held);

}  // namespace shardmat::multigrid
