// The pattern of a square matrix as an undirected graph, spread over the ranks.
#pragma once

#include <cstdint>

#include "comm/communicator.h"
#include "kernels/base/host_vector.h"
#include "runtime/order/row_share.h"

namespace shardmat {

/// The vertices of a rank are the rows of its share. Neighbours in the pattern of A + Aᵀ, by their rows in the whole matrix,
/// without the vertex itself, each once and ascending: those of vertex v lie from first[v] up to first[v + 1].
struct GraphShare {
  HostVector<std::int64_t> first;
  HostVector<std::int64_t> neighbour;
};

/// Collective. Reads the share twice, in slices; 16 bytes a row and up to 8 for each of its nonzeros and of those in its
/// columns. Throws Error(resources) on all ranks before one takes more than there is.
GraphShare graph_of(const RowShare& share, Communicator& communicator);

}  // namespace shardmat
