// Products of sparse rows of blocks.
//
// Threads: one thread of each rank. Collective functions say so.
#pragma once

#include "kernels/base/host_vector.h"
#include "runtime/solvers/multigrid/node_rows.h"

namespace shardmat::multigrid {

/// A·B; B has the rows of A's columns. Not collective.
NodeRows multiply(const NodeRows& a, const WithGhostRows& b);
/// Pᵀ·A·P, and again for other values.
class Galerkin {
 public:
  /// Makes the product; `all_p`: P with the rows of A's columns. Collective.
  Galerkin(const NodeRows& a, const NodeRows& p, const WithGhostRows& all_p, NodeRows& product);
  /// The product for other values. REQUIRES: patterns as those of the constructor. Collective.
  NodeRows operator()(const NodeRows& a, const NodeRows& p, const WithGhostRows& all_p);
  const ByColumn& columns() const { return columns_; }

 private:
  ByColumn columns_;  ///< of P
  NodeRows c_;        ///< the pattern of the rows of all columns of P
};

/// Where T = `t` made the coarse matrix of `a` with a diagonal entry of 0 up to rounding, it becomes the mean of its node's,
/// or 1, and the couplings in the node are cut: of a mode that an aggregate cannot carry, or of a body that nothing holds.
/// Not collective.
void mend_diagonal(NodeRows& coarse, const NodeRows& t, const NodeRows& a);

}  // namespace shardmat::multigrid
