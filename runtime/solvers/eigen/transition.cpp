#include "runtime/solvers/eigen/pagerank.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "kernels/base/error.h"
#include "partition/source/row_source.h"
#include "runtime/source/transposed.h"

namespace shardmat {
namespace {

std::int64_t original(const RowSource& graph, std::int64_t vertex) {
  return graph.permuted() ? graph.permutation(vertex, vertex + 1)[0] : vertex;
}

void require_weight(const RowSource& graph, std::int64_t row, std::int64_t column, double weight) {
  if (weight >= 0 && std::isfinite(weight)) return;
  throw Error(
      ErrorKind::input,
      fmt::format("{}: the edge from vertex {} to vertex {} has the weight {:g}; a random walk needs finite weights of "
                  "0 or more. Give their magnitudes, or count every edge as 1",
                  graph.name(), original(graph, row), original(graph, column), weight),
      "unweighted");
}

/// Divides weights by their sum. Returns true for a dangling vertex. Weights are scaled by the largest first: their sum
/// could be beyond the range of f64.
bool normalise_weights(std::span<double> weights) {
  const double largest = weights.empty() ? 0 : *std::max_element(weights.begin(), weights.end());
  if (largest == 0) return true;
  double sum = 0;
  for (const double weight : weights) sum += weight / largest;
  for (double& weight : weights) weight = weight / largest / sum;
  return false;
}

}  // namespace

Transition transition_matrix(const MatrixSource& source, const TransitionOptions& options, Communicator& ranks) {
  const RowSource& graph = *source.rows;
  ranks.run_agreed([&] {
    if (graph.rows() != graph.cols())
      throw Error(ErrorKind::usage,
                  fmt::format("a graph needs a square matrix; {} is {} × {}", graph.name(), graph.rows(), graph.cols()));
  });
  Transition result;
  std::int64_t with_edges = 0;
  const auto edit = [&](std::int64_t first_row, const CsrView& rows, std::span<double> values) {
    if (options.unweighted) std::fill(values.begin(), values.end(), 1.0);
    for (std::int64_t i = 0; i < rows.rows; ++i) {
      const auto row = static_cast<std::size_t>(i), begin = static_cast<std::size_t>(rows.row_ptr[row] - rows.row_ptr[0]),
                 end = static_cast<std::size_t>(rows.row_ptr[row + 1] - rows.row_ptr[0]);
      for (std::size_t k = begin; k < end; ++k) require_weight(graph, first_row + i, rows.col_idx[k], values[k]);
      if (!normalise_weights(values.subspan(begin, end - begin))) ++with_edges;
    }
  };
  result.links = transposed(source, options.method, ranks, edit);
  result.dangling = graph.rows() - ranks.all_reduce(with_edges, Reduction::sum);
  return result;
}

}  // namespace shardmat
