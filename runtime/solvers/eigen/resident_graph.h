// The random walk on a graph whose rows stay on the ranks as a distributed matrix, with the values that it has now.
//
// Threads: as DistributedMatrix. Everything is collective and throws the same error on all ranks.
#pragma once

#include <string>

#include "runtime/matrix/distributed_matrix.h"
#include "runtime/solvers/eigen/pagerank.h"

namespace shardmat {

/// Pᵀ of this square matrix, as transition_matrix() makes it from the matrix's source. Its rows are numbered in the order of
/// that source, so vectors move between both with move_own(). Host memory of a rank: as transition_matrix(), and 32 bytes a
/// nonzero. Throws as DistributedMatrix::host_rows() and transition_matrix(); `name` is that of the graph for people.
Transition transition_of(DistributedMatrix& graph, bool unweighted, const std::string& name);

/// to = from, where each lies on the rows of the graph or on those of its transition matrix. Both have the same number of
/// columns.
void move_own(const DistributedVector& from, DistributedVector& to);

}  // namespace shardmat
