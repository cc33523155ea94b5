// A distributed matrix as rows of blocks, and rows of blocks as a distributed matrix.
//
// Threads: one thread of each rank; everything here is collective, with the same error on all ranks.
#pragma once

#include <memory>

#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/held_rows.h"
#include "runtime/solvers/multigrid/node_rows.h"

namespace shardmat::multigrid {

/// The rows of a square matrix by nodes of `size` unknowns, in the order of the source. Held rows and columns become those
/// of the identity. REQUIRES: no rank has only some rows of a node. Throws as DistributedMatrix::host_rows().
NodeRows take_nodes(DistributedMatrix& matrix, int size, const HeldRows* held, Stream& stream);

/// The rows as a matrix for products. Maps that are given have as many unknowns as the nodes; the order of the source is
/// that of the nodes. Without maps rows keep their order.
std::unique_ptr<DistributedMatrix> make_matrix(const NodeRows& m, Context& context, MatrixOptions options);

}  // namespace shardmat::multigrid
