// Couplings that leave a motion free: two stiff parts that touch along an edge turn about it like leaves of a hinge, and at
// a corner like a ball and its socket. An aggregate of both would lock that motion, which takes little energy, and no
// smoother makes up for it.
//
// Threads: any; nothing here is collective.
#pragma once

#include "kernels/base/host_vector.h"
#include "runtime/solvers/multigrid/node_rows.h"

namespace shardmat::multigrid {

/// 1 for the blocks of a symmetric matrix that couple two of this rank's nodes so: a singular value of
/// D_i^(-1/2)·A_ij·D_j^(-1/2) is below 1/500. Unknowns without a part in A_ij do not count. `inverse`: inverse_diagonal(a).
HostVector<char> find_hinges(const NodeRows& a, const HostVector<double>& inverse);

}  // namespace shardmat::multigrid
