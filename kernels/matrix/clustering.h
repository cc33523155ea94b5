// Groups the rows of a square matrix by neighbourhood: the reordering of the packet format (Bell, Garland, who take METIS).
#pragma once

#include <cstdint>

#include "kernels/base/host_vector.h"
#include "kernels/matrix/csr.h"

namespace shardmat {

/// order[new] = old. Each `size` rows that follow each other are one cluster, grown breadth first in the graph of A + Aᵀ
/// from a vertex next to the clusters before; the last cluster may be smaller. Rows of a cluster come by descending length,
/// so that padding costs little. Depends only on the pattern. Memory and errors as adjacency_of(); Error(usage) for a size
/// below 1.
HostVector<std::int64_t> order_by_clusters(const CsrView& matrix, std::int64_t size);

}  // namespace shardmat
