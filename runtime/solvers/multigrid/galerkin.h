// Products of sparse rows of blocks.
//
// Threads: one thread of each rank. Collective functions say so.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/base/host_vector.h"
#include "runtime/solvers/multigrid/node_rows.h"

namespace shardmat::multigrid {

/// A·B; B has the rows of A's columns. Not collective.
NodeRows multiply(const NodeRows& a, const WithGhostRows& b);
/// Pᵀ·A·P, and again for other values. `all_p`: P with the rows of A's columns. All calls have the same patterns.
class Galerkin {
 public:
  explicit Galerkin(const NodeRows& p) : columns_(by_column(p)) {}
  /// About how many blocks the rows of the nodes that this rank made have in the product, the columns of T = `t`, or a bit
  /// less, from some of them. Not collective.
  std::int64_t foretold_blocks(const NodeRows& a, const NodeRows& t, const NodeRows& p, const WithGhostRows& all_p) const;
  /// The product. Collective.
  NodeRows operator()(const NodeRows& a, const NodeRows& p, const WithGhostRows& all_p);
  const ByColumn& columns() const { return columns_; }

 private:
  ByColumn columns_;           ///< of P
  std::optional<NodeRows> c_;  ///< the pattern of the rows of all columns of P; set by the first product
};

/// Where T = `t` made the coarse matrix of `a` with a diagonal entry of 0 up to rounding, it becomes the mean of its node's,
/// or 1, and the couplings in the node are cut: of a mode that an aggregate cannot carry, or of a body that nothing holds.
/// Collective.
void mend_diagonal(NodeRows& coarse, const NodeRows& t, const NodeRows& a);

}  // namespace shardmat::multigrid
