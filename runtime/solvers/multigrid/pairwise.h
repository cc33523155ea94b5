// Aggregates of up to four nodes by matching pairs twice, for matrices that are not symmetric: with a prolongation that is
// not smoothed, aggregates must be small, and follow the strongest couplings (Y. Notay, An aggregation-based algebraic
// multigrid method, Electron. Trans. Numer. Anal. 37, 2010, with other measures of a coupling).
//
// Threads: any; nothing here is collective.
#pragma once

#include "runtime/solvers/multigrid/aggregate.h"

namespace shardmat::multigrid {

/// Couplings between nodes or groups of them, without those of one with itself.
struct Weights {
  HostVector<std::int64_t> start{0};
  HostVector<std::int32_t> node;
  HostVector<double> weight;

  std::int64_t count() const { return std::ssize(start) - 1; }
};

/// A node takes its heaviest free neighbour, if that weighs `strength` times its heaviest neighbour at least. Then pairs do
/// the same, `rounds` times in all. Nodes that are 1 in `alone` are part of none; empty: all are. Weights are the same in
/// both directions.
Aggregates match_pairs(Weights weights, const HostVector<char>& alone, double strength, int rounds);

/// The weight of a coupling is ‖A_ij‖ + ‖A_ji‖: with the wind and against it.
Aggregates match_pairs(const NodeRows& a, const CouplingNorms& norms, double strength);

}  // namespace shardmat::multigrid
