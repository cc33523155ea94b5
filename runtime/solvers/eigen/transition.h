// From a graph to the matrix of a random walk on it.
//
// Threads: one thread of each rank; transition_matrix() is collective.
#pragma once

#include <cstdint>
#include <string>

#include "comm/communicator.h"
#include "runtime/source/matrix_source.h"

namespace shardmat {

struct TransitionOptions {
  bool unweighted = false;     ///< every stored entry of the graph counts as weight 1, whatever its value
  std::string method = "nnz";  ///< partitioner: which rows of Pᵀ each rank keeps
};

struct Transition {
  MatrixSource links;         ///< Pᵀ: entry (j, i) is the probability of a step from vertex i to vertex j
  std::int64_t dangling = 0;  ///< vertices whose weights sum to 0; their columns of Pᵀ hold zeros or nothing
};

/// Pᵀ of the graph whose entry (i, j) is the weight of an edge from vertex i to vertex j: weights over the sum of their row,
/// formed in f64. Memory: as transposed(), whose requirements `graph` must meet. Collective; the same error on all ranks:
/// Error(usage) for a matrix that is not square, Error(input) for a weight that is negative or not finite, which names the
/// edge.
Transition transition_matrix(const MatrixSource& graph, const TransitionOptions& options, Communicator& ranks);

}  // namespace shardmat
