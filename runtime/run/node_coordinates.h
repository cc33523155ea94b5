// Where the nodes of a matrix lie, as multigrid wants to know it.
//
// Threads: one thread of each rank; collective.
#pragma once

#include <memory>
#include <string>

#include "partition/source/row_source.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/solvers/loop/multigrid_options.h"

namespace shardmat {

/// Of this rank's nodes, in the order of the source: those of `file`, which has a line for each node; without a file (an
/// empty name) those that the source of the matrix knows. Null: not known. Throws Error(input) for a file that does not fit.
/// Collective; the same error on all ranks.
std::shared_ptr<const NodeCoordinates> find_node_coordinates(const DistributedMatrix& matrix, const RowSource& source,
                                                             const std::string& file);

/// This rank's nodes in the middle of edges, as the source of the matrix knows them; null: it does not. Collective.
std::shared_ptr<const MidEdgeNodes> find_mid_edge_nodes(const DistributedMatrix& matrix, const RowSource& source);

}  // namespace shardmat
