// The rows of a matrix that no host can hold, in an order that puts those together which share columns.
#pragma once

#include <cstdint>

#include "comm/communicator.h"
#include "kernels/base/host_vector.h"
#include "runtime/order/row_share.h"

namespace shardmat {

bool built_with_ptscotch();

/// The new position of each row of this rank's share of a square matrix: part after part, each part's rows in their old
/// order. The parts have as many nonzeros each as can be and few nonzeros between them: PT-Scotch's recursive bisection of
/// the pattern of A + Aᵀ (C. Chevalier and F. Pellegrini, "PT-Scotch: A tool for efficient parallel graph ordering",
/// Parallel Computing 2008), so that the halves of the order are good parts, too, and so on. Another number of ranks gives
/// another order. Fewer rows than ranks stay where they are, as PT-Scotch does not end on ranks without rows.
/// Collective. Takes what graph_of() does and about three times the graph. Throws on all ranks Error(usage) in builds
/// without PT-Scotch, Error(resources) for a graph beyond memory or PT-Scotch's integers, and what require_mpi_threads()
/// does.
HostVector<std::int64_t> order_by_graph(const RowShare& share, Communicator& communicator, int parts);

}  // namespace shardmat
