#include "kernels/matrix/adjacency.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"

namespace shardmat {

Adjacency adjacency_of(const CsrView& matrix) {
  if (matrix.rows != matrix.cols) throw Error(ErrorKind::usage, "only square matrices can be reordered");
  if (matrix.rows > std::numeric_limits<Adjacency::Vertex>::max())
    throw Error(ErrorKind::resources, "only matrices of fewer than 2^31 rows can be reordered");
  require_host_memory(40 * matrix.rows + 8 * matrix.nnz(), "the graph of the matrix, to order it");
  const auto n = static_cast<std::size_t>(matrix.rows);
  const auto for_edges = [&](const auto& edge) {
    for (std::size_t i = 0; i < n; ++i)
      for (std::int64_t k = matrix.row_ptr[i] - matrix.row_ptr[0]; k < matrix.row_ptr[i + 1] - matrix.row_ptr[0]; ++k) {
        const auto j = static_cast<std::size_t>(matrix.col_idx[static_cast<std::size_t>(k)]);
        if (i != j) edge(i, j), edge(j, i);
      }
  };
  Adjacency graph;
  graph.first.resize(n + 1);
  std::fill(graph.first.begin(), graph.first.end(), 0);
  for_edges([&](std::size_t from, std::size_t) { ++graph.first[from + 1]; });
  std::partial_sum(graph.first.begin(), graph.first.end(), graph.first.begin());
  graph.neighbour.resize(static_cast<std::size_t>(graph.first[n]));
  HostVector<std::int64_t> end(graph.first.begin(), graph.first.end() - 1);
  for_edges([&](std::size_t from, std::size_t to) {
    graph.neighbour[static_cast<std::size_t>(end[from]++)] = static_cast<Adjacency::Vertex>(to);
  });
  graph.degree.resize(n);
  parallel_ranges(matrix.rows, 1 << 12, [&](std::int64_t lo, std::int64_t hi) {
    for (auto v = static_cast<std::size_t>(lo); v < static_cast<std::size_t>(hi); ++v) {
      const auto begin = graph.neighbour.begin() + graph.first[v];
      std::sort(begin, graph.neighbour.begin() + end[v]);
      graph.degree[v] = static_cast<std::int32_t>(std::unique(begin, graph.neighbour.begin() + end[v]) - begin);
    }
  });
  return graph;
}

}  // namespace shardmat
