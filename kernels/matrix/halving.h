// An order of a graph's vertices in which those near each other are near, too.
#pragma once

#include <vector>

#include "kernels/matrix/adjacency.h"

namespace shardmat {

/// Halves the vertices, and the halves again, until a part has at most `most`: each time by their distance from a vertex at
/// the far end, so across the direction in which the part is longest (level structures, as in A. George and J. W. H. Liu,
/// "Computer Solution of Large Sparse Positive Definite Systems", 1981). Parts follow each other; within one the vertices
/// ascend. Time: edges · log(vertices / most).
std::vector<Adjacency::Vertex> order_by_halving(const Adjacency& graph, Adjacency::Vertex most);

}  // namespace shardmat
