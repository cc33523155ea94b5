// Aggregates of up to four nodes by matching pairs twice, for matrices that are not symmetric: with a prolongation that is
// not smoothed, aggregates must be small, and follow the strongest couplings (Y. Notay, An aggregation-based algebraic
// multigrid method, Electron. Trans. Numer. Anal. 37, 2010, with other measures of a coupling).
//
// Threads: any; nothing here is collective.
#pragma once

#include "runtime/solvers/multigrid/aggregate.h"

namespace shardmat::multigrid {

/// The weight of a coupling is ‖A_ij‖ + ‖A_ji‖, which is the same in both directions: with the wind and against it. A node
/// takes its heaviest free neighbour, if that weighs `strength` times its heaviest neighbour at least. Then pairs do the
/// same.
Aggregates match_pairs(const NodeRows& a, const CouplingNorms& norms, double strength);

}  // namespace shardmat::multigrid
