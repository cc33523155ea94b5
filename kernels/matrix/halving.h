// Orders the vertices of a graph so that vertices that are near in the graph are near in the order.
#pragma once

#include <vector>

#include "kernels/matrix/adjacency.h"

namespace shardmat {

/// Halves the vertices recursively until a part has at most `most` vertices. Each cut goes by the distance from a vertex at
/// one end of the part, so it cuts across the part's longest direction (level structures, as in A. George and J. W. H. Liu,
/// "Computer Solution of Large Sparse Positive Definite Systems", 1981). The order goes part by part; vertices ascend within
/// a part. Time: edges · log(vertices / most).
std::vector<Adjacency::Vertex> order_by_halving(const Adjacency& graph, Adjacency::Vertex most);

}  // namespace shardmat
