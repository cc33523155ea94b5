#include "partition/source/graph_order.h"

#include "kernels/base/error.h"

#ifdef SHARDMAT_HAVE_METIS
#include <fmt/format.h>
#include <metis.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/base/memory_limits.h"
#include "kernels/base/text.h"
#include "kernels/matrix/adjacency.h"
#endif

namespace shardmat {

#ifdef SHARDMAT_HAVE_METIS

namespace {

/// The graph as METIS takes it, a vertex weighing as much as its row has nonzeros.
struct MetisGraph {
  std::vector<idx_t> first, neighbour, weight;
};

MetisGraph metis_graph(const CsrView& matrix) {
  const Adjacency graph = adjacency_of(matrix);
  const auto edges = std::accumulate(graph.degree.begin(), graph.degree.end(), std::int64_t{0});
  if (edges > std::numeric_limits<idx_t>::max())
    throw Error(ErrorKind::resources,
                fmt::format("the graph of the matrix has {} neighbours, more than this METIS counts; use the order rcm",
                            human_count(edges)),
                "order");
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(idx_t));
  // METIS holds the graph, coarser ones and the halves of each bisection beside ours.
  require_host_memory(kBytes * (12 * matrix.rows + 6 * edges), "partitioning the graph of the matrix");
  MetisGraph result;
  result.first.reserve(static_cast<std::size_t>(matrix.rows) + 1);
  result.weight.reserve(static_cast<std::size_t>(matrix.rows));
  result.first.push_back(0);
  result.neighbour.reserve(static_cast<std::size_t>(edges));
  for (Adjacency::Vertex v = 0; v < graph.vertices(); ++v) {
    const auto neighbours = graph.of(v);
    result.neighbour.insert(result.neighbour.end(), neighbours.begin(), neighbours.end());
    result.first.push_back(static_cast<idx_t>(result.neighbour.size()));
    const auto row = static_cast<std::size_t>(v);
    result.weight.push_back(static_cast<idx_t>(matrix.row_ptr[row + 1] - matrix.row_ptr[row]));
  }
  return result;
}

}  // namespace

bool built_with_metis() { return true; }

HostVector<std::int64_t> order_by_graph(const CsrView& matrix, int parts, std::int64_t node_block_size) {
  MetisGraph graph = metis_graph(matrix);
  std::vector<idx_t> part(static_cast<std::size_t>(matrix.rows), 0);
  if (parts >= matrix.rows) {  // METIS would complain of parts without rows
    std::iota(part.begin(), part.end(), idx_t{0});
  } else if (parts > 1) {
    idx_t vertices = static_cast<idx_t>(matrix.rows), weights = 1, count = parts, cut = 0;
    std::array<idx_t, METIS_NOPTIONS> options;
    METIS_SetDefaultOptions(options.data());
    options[METIS_OPTION_SEED] = 1;
    const int status =
        METIS_PartGraphRecursive(&vertices, &weights, graph.first.data(), graph.neighbour.data(), graph.weight.data(),
                                 nullptr, nullptr, &count, nullptr, nullptr, options.data(), &cut, part.data());
    if (status == METIS_ERROR_MEMORY)
      throw Error(ErrorKind::resources, "METIS ran out of memory partitioning the graph of the matrix; use the order rcm",
                  "order");
    if (status != METIS_OK)
      throw Error(ErrorKind::internal, fmt::format("METIS could not partition the graph of the matrix (status {})", status));
  }
  const auto size = static_cast<std::size_t>(node_block_size);
  for (std::size_t row = 0; row < part.size(); ++row) part[row] = part[row / size * size];
  HostVector<std::int64_t> order(part.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return part[static_cast<std::size_t>(a)] < part[static_cast<std::size_t>(b)];
  });
  return order;
}

#else

bool built_with_metis() { return false; }

HostVector<std::int64_t> order_by_graph(const CsrView&, int, std::int64_t) {
  throw Error(ErrorKind::usage,
              "this build has no METIS to partition graphs; install libmetis-dev and build again, or use the order rcm",
              "order");
}

#endif

}  // namespace shardmat
