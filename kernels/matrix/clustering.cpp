#include "kernels/matrix/clustering.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "kernels/base/error.h"
#include "kernels/matrix/adjacency.h"

namespace shardmat {

HostVector<std::int64_t> order_by_clusters(const CsrView& matrix, std::int64_t size) {
  if (size < 1) throw Error(ErrorKind::usage, fmt::format("clusters of {} rows cannot be made", size));
  using Vertex = Adjacency::Vertex;
  const Adjacency graph = adjacency_of(matrix);
  const Vertex n = graph.vertices();
  HostVector<std::int64_t> order;
  order.reserve(static_cast<std::size_t>(n));
  HostVector<char> taken(static_cast<std::size_t>(n));
  std::fill(taken.begin(), taken.end(), 0);
  // A vertex is `seen` by the cluster that queued it last; those that find no room wait as seeds of later clusters.
  HostVector<std::int32_t> seen(static_cast<std::size_t>(n));
  std::fill(seen.begin(), seen.end(), -1);
  std::deque<Vertex> queue, seeds;
  Vertex lowest = 0;
  const auto next_seed = [&]() -> Vertex {
    for (; !seeds.empty(); seeds.pop_front())
      if (!taken[static_cast<std::size_t>(seeds.front())]) return seeds.front();
    while (lowest < n && taken[static_cast<std::size_t>(lowest)]) ++lowest;
    return lowest;
  };
  for (std::int32_t cluster = 0; std::ssize(order) < n; ++cluster) {
    const std::int64_t begin = std::ssize(order), end = std::min<std::int64_t>(begin + size, n);
    queue.clear();
    while (std::ssize(order) < end) {
      if (queue.empty()) {
        const Vertex seed = next_seed();
        seen[static_cast<std::size_t>(seed)] = cluster;
        queue.push_back(seed);
      }
      const Vertex v = queue.front();
      queue.pop_front();
      taken[static_cast<std::size_t>(v)] = 1;
      order.push_back(v);
      for (const Vertex w : graph.of(v))
        if (!taken[static_cast<std::size_t>(w)] && seen[static_cast<std::size_t>(w)] != cluster) {
          seen[static_cast<std::size_t>(w)] = cluster;
          queue.push_back(w);
        }
    }
    seeds.insert(seeds.end(), queue.begin(), queue.end());
  }
  return order;
}

}  // namespace shardmat
