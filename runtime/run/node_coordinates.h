// What multigrid wants to know of the nodes of a matrix: where they lie, which are in the middle of an edge, and vectors
// that the matrix maps to almost 0.
//
// Threads: one thread of each rank; everything is collective, and throws the same error on all ranks.
#pragma once

#include <memory>

#include "partition/nodes/given_nodes.h"
#include "partition/source/row_source.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/solvers/loop/multigrid_options.h"

namespace shardmat {

/// What the files say, else what the source of the matrix knows, which must live as long as the result. Throws Error(input)
/// for files that do not fit.
std::unique_ptr<const NodeFacts> open_nodes(const DistributedMatrix& matrix, const RowSource& source,
                                            const NodeFiles& files);

/// Of this rank's nodes, in the order of the source. Null: not known, or of nodes of another size.
std::shared_ptr<const NodeCoordinates> find_node_coordinates(const DistributedMatrix& matrix, const NodeFacts& nodes);
std::shared_ptr<const MidEdgeNodes> find_mid_edges(const DistributedMatrix& matrix, const NodeFacts& nodes);
/// Of this rank's rows, in the order of the source; null: none are known.
std::shared_ptr<const NearNullVectors> find_near_null_vectors(const DistributedMatrix& matrix, const NodeFacts& nodes);

}  // namespace shardmat
