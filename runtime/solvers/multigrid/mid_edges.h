// The first coarse level of quadratic elements: without the nodes in the middle of edges, which take the mean of the ends.
//
// Threads: one thread of each rank. Collective functions say so.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/base/host_vector.h"
#include "runtime/maps/row_map.h"
#include "runtime/solvers/loop/preconditioner_options.h"
#include "runtime/solvers/multigrid/node_rows.h"
#include "runtime/solvers/multigrid/prolong.h"

namespace shardmat::multigrid {

/// Nodes in the middle of edges, with numbers of Nodes: node i lies between ends[2 i] and ends[2 i + 1].
struct MidEdges {
  HostVector<std::int32_t> nodes;  ///< local ones of this rank, ascending
  HostVector<std::int64_t> ends;   ///< of any rank
  bool any = false;                ///< some rank has such nodes
};

/// `given` with the numbers that the nodes of `map` have in multigrid, `size` unknowns each; none for null. Throws
/// Error(usage) if some ranks give none, and Error(input) for a node that is not of this rank or comes twice, for ends that
/// are no nodes, and for ends that are in the middle of edges themselves. Collective.
MidEdges number_mid_edges(const MidEdgeNodes* given, const RowMap& map, int size, Communicator& ranks);

/// P of such a level, and T, its rows of the other nodes. Unknowns that are coupled with nothing have no rows.
struct MidEdgeTransfer {
  NodeRows corners, p;
  Modes modes;  ///< of the other nodes
};
/// The other nodes lie as on_fewer_ranks() says for `least` of them. Collective.
MidEdgeTransfer drop_mid_edges(const NodeRows& a, const Modes& modes, const MidEdges& mid_edges, std::int64_t least = 0);

}  // namespace shardmat::multigrid
