// Vectors of the near null space that are found by cycles, where nobody can give coordinates.
//
// M. Brezina, R. Falgout, S. MacLachlan, T. Manteuffel, S. McCormick, J. Ruge, Adaptive smoothed aggregation, SIAM Review 47
// (2005): what a first hierarchy hardly reduces is what the next one has to represent. All vectors go through a cycle at
// once, and are kept orthogonal, so that each finds another slow direction.
//
// Threads: one thread of each rank; collective.
#pragma once

#include <functional>

#include "runtime/maps/row_map.h"
#include "runtime/solvers/multigrid/node_rows.h"
#include "runtime/solvers/multigrid/prolong.h"

namespace shardmat::multigrid {

/// How many vectors nodes of `size` unknowns get beside the constants: 1, 3 or 6, twice what rigid-body modes have beside
/// them. Measured: 3 for nodes of three unknowns take up to three times the iterations of 6.
int adaptive_vectors(int size);

/// Measured from 8 to 20 on hexahedra, a beam and two parts of tetrahedra: 16 take the least time.
inline constexpr int kAdaptiveCycles = 16;

/// Changes `count` vectors, row-major in the order of the nodes, by a cycle for A·x = 0: x = x − M·A·x.
using Sweep = std::function<void(HostVector<double>& vectors)>;

/// `known`, then `count` vectors that sweeps from random vectors leave: orthogonal to each other and to `known`, with
/// entries of about 1. Unknowns that `known` does not move stay so. Random entries depend on the ids of `map` alone.
Modes with_slow_vectors(const Modes& known, int count, const RowMap& map, Communicator& ranks, const Sweep& sweep);

}  // namespace shardmat::multigrid
