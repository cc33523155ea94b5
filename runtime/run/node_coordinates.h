// What files say of the nodes of a matrix: where they lie, which are in the middle of an edge, and vectors that the matrix
// maps to almost 0.
//
// Threads: one thread of each rank; everything is collective, and throws the same error on all ranks.
#pragma once

#include <memory>

#include "partition/nodes/given_nodes.h"
#include "partition/source/row_source.h"
#include "runtime/matrix/distributed_matrix.h"

namespace shardmat {

/// What the files say, else what the source of the matrix knows, which must live as long as the result. Throws Error(input)
/// for files that do not fit.
std::unique_ptr<const NodeFacts> open_nodes(const DistributedMatrix& matrix, const RowSource& source,
                                            const NodeFiles& files);

}  // namespace shardmat
