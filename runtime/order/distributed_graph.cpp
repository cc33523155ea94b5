#include "runtime/order/distributed_graph.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "comm/items_by_rank.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"

namespace shardmat {
namespace {

struct Edge {
  std::int64_t from, to;
};

/// Collective: each edge that begins in this rank's share, some of them twice, in the same order each time.
void for_each_edge(const RowShare& share, Communicator& communicator, const std::function<void(const Edge&)>& use) {
  for_each_round(share, communicator, [&](std::int64_t first_row, const HostCsr& rows) {
    const ItemsByRank<Edge> away = communicator.run_agreed([&] {
      std::vector<Edge> edges;
      for (std::int64_t i = 0; i < rows.rows; ++i)
        for (auto k = rows.row_ptr[static_cast<std::size_t>(i)]; k < rows.row_ptr[static_cast<std::size_t>(i) + 1]; ++k) {
          const std::int64_t row = first_row + i, column = rows.col_idx[static_cast<std::size_t>(k)];
          if (row == column) continue;
          use({row, column});
          if (share.owns(column)) use({column, row});
          else edges.push_back({column, row});
        }
      return sort_by_rank<Edge>(edges, communicator.size(),
                                [&](const Edge& edge) { return owner_of(share.starts, edge.from); });
    });
    for (const Edge& edge : send_items(communicator, away).items) use(edge);
  });
}

/// Each neighbour once, ascending; end[v]: where those of v end.
void sort_and_pack(GraphShare& graph, HostVector<std::int64_t>& end) {
  parallel_ranges(std::ssize(end), 1 << 12, [&](std::int64_t lo, std::int64_t hi) {
    for (auto v = static_cast<std::size_t>(lo); v < static_cast<std::size_t>(hi); ++v) {
      const auto begin = graph.neighbour.begin() + graph.first[v];
      std::sort(begin, graph.neighbour.begin() + end[v]);
      end[v] = std::unique(begin, graph.neighbour.begin() + end[v]) - graph.neighbour.begin();
    }
  });
  std::int64_t packed = 0;
  for (std::size_t v = 0; v < end.size(); ++v) {
    const std::int64_t first = graph.first[v];
    graph.first[v] = packed;
    packed = std::copy(graph.neighbour.begin() + first, graph.neighbour.begin() + end[v], graph.neighbour.begin() + packed) -
             graph.neighbour.begin();
  }
  graph.first.back() = packed;
  graph.neighbour.resize(static_cast<std::size_t>(packed));
}

}  // namespace

GraphShare graph_of(const RowShare& share, Communicator& communicator) {
  constexpr const char* kWhat = "the graph of this rank's rows, to order them";
  const auto place = [&](std::int64_t row) { return static_cast<std::size_t>(row - share.begin); };
  GraphShare graph;
  communicator.run_agreed([&] {
    require_host_memory(16 * (share.rows() + 1), kWhat);
    graph.first.resize(static_cast<std::size_t>(share.rows()) + 1);
    std::fill(graph.first.begin(), graph.first.end(), 0);
  });
  for_each_edge(share, communicator, [&](const Edge& edge) { ++graph.first[place(edge.from) + 1]; });
  std::partial_sum(graph.first.begin(), graph.first.end(), graph.first.begin());
  HostVector<std::int64_t> end = communicator.run_agreed([&] {
    require_host_memory(8 * (share.rows() + graph.first.back()), kWhat);
    graph.neighbour.resize(static_cast<std::size_t>(graph.first.back()));
    return HostVector<std::int64_t>(graph.first.begin(), graph.first.end() - 1);
  });
  for_each_edge(share, communicator,
                [&](const Edge& edge) { graph.neighbour[static_cast<std::size_t>(end[place(edge.from)]++)] = edge.to; });
  communicator.run_agreed([&] { sort_and_pack(graph, end); });
  return graph;
}

}  // namespace shardmat
