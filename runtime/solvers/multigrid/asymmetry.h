// How far a matrix is from a symmetric one.
//
// Threads: one thread of each rank; collective.
#pragma once

#include "runtime/solvers/multigrid/node_rows.h"

namespace shardmat::multigrid {

/// An estimate of ‖A − Aᵀ‖ / ‖A‖ in Frobenius norms for a square matrix, from xᵀAy − yᵀAx for 8 pairs of random vectors of
/// ±1: the mean of the squares is ‖A − Aᵀ‖² (without vectors in memory, nor rows of other ranks). Usually within a third
/// of the norm; 0 up to rounding if A is symmetric. The same on all ranks.
double asymmetry(const NodeRows& a);

}  // namespace shardmat::multigrid
