// What a matrix knows of its nodes (DistributedMatrix::nodes()), as multigrid takes it.
//
// Threads: one thread of each rank; everything is collective, and throws the same error on all ranks.
#pragma once

#include <memory>

#include "partition/source/node_facts.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/solvers/loop/preconditioner_options.h"

namespace shardmat {

/// Of this rank's nodes, in the order of the source. Null: not known, or of nodes of another size.
std::shared_ptr<const NodeCoordinates> find_node_coordinates(const DistributedMatrix& matrix, const NodeFacts& nodes);
std::shared_ptr<const MidEdgeNodes> find_mid_edges(const DistributedMatrix& matrix, const NodeFacts& nodes);
/// Of this rank's rows, in the order of the source; null: none are known.
std::shared_ptr<const NearNullVectors> find_near_null_vectors(const DistributedMatrix& matrix, const NodeFacts& nodes);

/// Puts what the matrix knows in place of what the options leave open. Coordinates then tell the order of the unknowns of
/// their nodes; so call it once.
void take_known_nodes(const DistributedMatrix& matrix, MultigridOptions& options);

}  // namespace shardmat
