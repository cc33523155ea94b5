// Orders rows so that rows that share columns come together, by partitioning the graph of the matrix.
#pragma once

#include "kernels/base/host_vector.h"
#include "kernels/matrix/csr.h"

namespace shardmat {

bool built_with_metis();

/// Returns an order (new -> old) of the rows of a square matrix. The order goes part by part; the rows of a part keep their
/// old order. Parts have nearly equal numbers of nonzeros, and few nonzeros couple two parts. METIS makes them by recursive
/// bisection of the pattern of A + Aᵀ (G. Karypis and V. Kumar, "A Fast and High Quality Multilevel Scheme for Partitioning
/// Irregular Graphs", SIAM J. Sci. Comput. 1998), so halves, quarters … of the order are good parts, too. The order depends
/// only on the pattern and `parts`. A node, `node_block_size` rows that follow each other, stays in one part. Throws
/// Error(usage) for matrices that are not square and in builds without METIS, Error(resources) for a graph beyond memory or
/// METIS' indices.
HostVector<std::int64_t> order_by_graph(const CsrView& matrix, int parts, std::int64_t node_block_size = 1);

}  // namespace shardmat
