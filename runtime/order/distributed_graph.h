// The pattern of a square matrix as an undirected graph, spread over the ranks.
#pragma once

#include <cstdint>

#include "comm/communicator.h"
#include "kernels/base/host_vector.h"
#include "runtime/order/row_share.h"

namespace shardmat {

/// Adjacency lists of the pattern of A + Aᵀ. The vertices of a rank are the rows of its share. The neighbours of vertex v
/// are neighbour[first[v]] … neighbour[first[v + 1] - 1]: row numbers of the whole matrix, ascending, each once, without the
/// vertex itself.
struct GraphShare {
  HostVector<std::int64_t> first;
  HostVector<std::int64_t> neighbour;
};

/// Collective. Reads the share twice, in slices. Takes 16 bytes a row, and up to 8 bytes for each nonzero in the share's
/// rows and in its columns. Throws Error(resources) on all ranks before any rank allocates more memory than it has.
GraphShare graph_of(const RowShare& share, Communicator& communicator);

}  // namespace shardmat
