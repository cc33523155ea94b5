// Products of sparse rows of blocks.
//
// Threads: one thread of each rank. Collective functions say so.
#pragma once

#include "runtime/solvers/multigrid/node_rows.h"

namespace shardmat::multigrid {

/// A·B. B's rows are those of A's columns, ghosts included (with_ghost_rows()). Not collective.
NodeRows multiply(const NodeRows& a, const NodeRows& b);

/// Pᵀ·A·P. A diagonal entry of 0, of a mode that an aggregate cannot carry, becomes the mean of its node's. Collective.
NodeRows galerkin(const NodeRows& a, const NodeRows& p);

}  // namespace shardmat::multigrid
