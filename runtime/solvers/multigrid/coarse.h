// The last level: the inverse of a small matrix.
//
// Threads: one thread of each rank; collective.
#pragma once

#include "runtime/solvers/multigrid/node_rows.h"
#include "runtime/solvers/multigrid/prolong.h"

namespace shardmat::multigrid {

/// The rows of A⁻¹ that this rank has of A. Every rank with rows holds all of A meanwhile, dense. Along each vector v of
/// `free`, which A maps to 0, v·vᵀ is added before; other directions without stiffness are left out. `symmetric`: A is, and
/// has no negative direction. Collective.
NodeRows dense_inverse(const NodeRows& a, const Modes& free, bool symmetric = true);

}  // namespace shardmat::multigrid
