// Aggregates: the nodes of a level in groups, each of which becomes a node of the next level.
//
// Threads: any; nothing here is collective.
#pragma once

#include <cstdint>

#include "kernels/base/host_vector.h"
#include "runtime/solvers/multigrid/node_rows.h"

namespace shardmat::multigrid {

/// Strong couplings between this rank's nodes, without those of a node with itself.
struct StrongGraph {
  HostVector<std::int64_t> start{0};
  HostVector<std::int32_t> node;
  HostVector<char> alone;  ///< 1: coupled with no other node at all, as known values are; not part of coarser levels

  std::int64_t count() const { return std::ssize(alone); }
};

/// Squares of the Frobenius norms of blocks, and the norms of those on the diagonal.
struct CouplingNorms {
  HostVector<double> square, diagonal;
  explicit CouplingNorms(const NodeRows& a);
};

/// ‖A_ij‖ ≥ theta √(‖A_ii‖ ‖A_jj‖) in Frobenius norms (Vaněk, Mandel, Brezina, Computing 56, 1996, for blocks). Blocks that
/// `left_out` has a 1 for are none; empty: it has none.
StrongGraph strong_couplings(const NodeRows& a, const CouplingNorms& norms, double theta,
                             const HostVector<char>& left_out = {});

/// Nodes are coupled if they are in `graph`, or both with a third node: aggregates of it are wider.
StrongGraph squared(const StrongGraph& graph);

struct Aggregates {
  HostVector<std::int32_t> of_node;  ///< -1: part of none
  std::int64_t count = 0;
  std::int64_t single = 0;  ///< aggregates of one node
};

/// Roots are nodes none of whose neighbours is taken; they take their neighbours, so that roots are three couplings apart or
/// more. All other nodes have a taken neighbour, and join the aggregate of a root that most of their neighbours are in.
/// Nodes without strong couplings are aggregates of their own.
Aggregates make_aggregates(const StrongGraph& graph);

}  // namespace shardmat::multigrid
