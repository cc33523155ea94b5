// Rows in an order that puts those together which share columns, by partitioning the graph of the matrix.
#pragma once

#include <span>

#include "kernels/base/host_vector.h"
#include "kernels/matrix/csr.h"
#include "partition/row_source.h"

namespace shardmat {

bool built_with_metis();

/// Throws Error(usage) for a matrix that is not square and so has no order by its pattern.
void require_square(const RowSource& source);
/// How many parts of the graph an order is made for: the largest of these; throws Error(usage) if there is none.
int parts_of_graph(std::span<const int> parts);

/// The rows of a square matrix, new -> old, part after part, each part's rows in their old order. The parts have about as
/// many nonzeros each and few nonzeros between them: METIS' recursive bisection of the pattern of A + Aᵀ (G. Karypis and V.
/// Kumar, "A Fast and High Quality Multilevel Scheme for Partitioning Irregular Graphs", SIAM J. Sci. Comput. 1998), so that
/// the halves of the order are good parts, too, and so on. The same for the same pattern. Throws Error(usage) for matrices
/// that are not square and builds without METIS, Error(resources) for a graph beyond memory or METIS' indices.
HostVector<std::int64_t> order_by_graph(const CsrView& matrix, int parts);

}  // namespace shardmat
