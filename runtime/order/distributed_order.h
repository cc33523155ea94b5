// Orders the rows of a matrix that is too large for one host, so that rows that share columns come together.
#pragma once

#include <cstdint>

#include "comm/communicator.h"
#include "kernels/base/host_vector.h"
#include "runtime/order/row_share.h"

namespace shardmat {

bool built_with_ptscotch();

/// Returns the new position of each row of this rank's share of a square matrix. The order goes part by part; the rows of a
/// part keep their old order. Parts have nearly equal numbers of nonzeros, and few nonzeros couple two parts. PT-Scotch
/// makes them by recursive bisection of the pattern of A + Aᵀ (C. Chevalier and F. Pellegrini, "PT-Scotch: A tool for
/// efficient parallel graph ordering", Parallel Computing 2008), so halves, quarters … of the order are good parts, too.
/// The order depends on the number of ranks. With fewer rows than ranks the order stays as it is, because PT-Scotch hangs on
/// ranks without rows. Collective. Takes the memory of graph_of() and about three times the graph. Throws on all ranks
/// Error(usage) in builds without PT-Scotch, Error(resources) for a graph beyond memory or PT-Scotch's integers, and what
/// require_mpi_threads() throws.
HostVector<std::int64_t> order_by_graph(const RowShare& share, Communicator& communicator, int parts);

}  // namespace shardmat
