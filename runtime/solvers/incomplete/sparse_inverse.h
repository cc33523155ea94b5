// The factorised sparse approximate inverse of a symmetric positive definite matrix: a lower triangular G in a given pattern
// for which G·A·Gᵀ has a unit diagonal and Gᵀ·G is near A⁻¹ (L. Kolotilina, A. Yeremin, SIAM J. Matrix Anal. Appl. 14,
// 1993). Each row comes from a small dense system of its own.
//
// Threads: one thread of each rank; everything here is collective, with the same error on all ranks.
#pragma once

#include "runtime/solvers/multigrid/node_rows.h"

namespace shardmat::incomplete {

struct InversePattern {
  int powers = 1;             ///< of the matrix whose pattern G has: 1 or 2
  double drop_tolerance = 0;  ///< couplings below this share of the diagonals that they couple do not count
};

/// Rows of G by nodes, with blocks that are triangular on the diagonal. The rows of `a` of all ranks are ordered by number,
/// so G does not depend on their number. Throws Error(input), naming the row, where `a` is not positive definite.
multigrid::NodeRows sparse_inverse(const multigrid::NodeRows& a, const InversePattern& pattern);

}  // namespace shardmat::incomplete
