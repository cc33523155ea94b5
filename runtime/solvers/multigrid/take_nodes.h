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

/// Of each place of x the row that its column names, in the order of the source; −1: none. Collective.
HostVector<std::int64_t> rows_of_columns(const DistributedMatrix& matrix);

}  // namespace shardmat::multigrid
