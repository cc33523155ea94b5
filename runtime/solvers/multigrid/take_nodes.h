// A distributed matrix as rows of blocks.
//
// Threads: one thread of each rank; everything here is collective, with the same error on all ranks.
#pragma once

#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/held_rows.h"
#include "runtime/solvers/multigrid/node_rows.h"

namespace shardmat::multigrid {

/// The rows of a square matrix by nodes of `size` unknowns, in the order of the source. Held rows and columns become those
/// of the identity. REQUIRES: no rank has only some rows of a node. Throws as DistributedMatrix::host_rows().
NodeRows take_nodes(DistributedMatrix& matrix, int size, const HeldRows* held, Stream& stream);

}  // namespace shardmat::multigrid
