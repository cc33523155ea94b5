// Rows in an order that puts those together which share columns, by partitioning the graph of the matrix.
#pragma once

#include "kernels/base/host_vector.h"
#include "kernels/matrix/csr.h"

namespace shardmat {

bool built_with_metis();

/// The rows of a square matrix, new -> old, part after part, each part's rows in their old order. The parts have about as
/// many nonzeros each and few nonzeros between them: METIS' recursive bisection of the pattern of A + Aᵀ (G. Karypis and V.
/// Kumar, "A Fast and High Quality Multilevel Scheme for Partitioning Irregular Graphs", SIAM J. Sci. Comput. 1998), so that
/// the halves of the order are good parts, too, and so on. The same for the same pattern. Throws Error(usage) for matrices
/// that are not square and builds without METIS, Error(resources) for a graph beyond memory or METIS' indices.
HostVector<std::int64_t> order_by_graph(const CsrView& matrix, int parts);

}  // namespace shardmat
