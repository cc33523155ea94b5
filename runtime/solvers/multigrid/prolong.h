// Prolongation: what a coarse node's unknowns make of the nodes of its aggregate.
//
// Threads: one thread of each rank. Collective functions say so.
#pragma once

#include <memory>

#include "kernels/base/host_vector.h"
#include "runtime/solvers/multigrid/aggregate.h"
#include "runtime/solvers/multigrid/node_rows.h"

namespace shardmat::multigrid {

/// Modes that an aggregate keeps exactly: m vectors, row-major, row_size × m values a node.
struct Modes {
  int size = 0, count = 0;  ///< unknowns of a node; number of vectors
  HostVector<double> value;
};

/// T, the modes cut by aggregates and made orthonormal there. A mode that the modes before it span in an aggregate becomes
/// 0. The factors are the modes of the coarse nodes. Numerically as a QR factorisation by modified Gram and Schmidt, twice.
/// The coarse nodes lie as on_fewer_ranks() says for `least` of them. Collective.
NodeRows tentative(const Aggregates& aggregates, const Modes& modes, const std::shared_ptr<const Nodes>& nodes,
                   Modes& coarse_modes, std::int64_t least = 0);

/// Tᵀ·V: what of some vectors the coarse nodes have. All of them, if T's modes span them in each aggregate. Collective.
Modes restricted(const NodeRows& t, const Modes& v);

/// P = T − omega·D⁻¹·A·T (Vaněk, Mandel, Brezina). `inverse`: D⁻¹, a block a row. Collective.
NodeRows smoothed(const NodeRows& t, const NodeRows& a, const HostVector<double>& inverse, double omega);

}  // namespace shardmat::multigrid
