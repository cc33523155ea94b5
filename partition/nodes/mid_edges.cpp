#include "partition/nodes/mid_edges.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"

namespace shardmat {

std::vector<MidEdge> checked_mid_edges(std::vector<MidEdge> list, std::int64_t nodes,
                                       const std::function<std::string(std::int64_t)>& place) {
  const auto fail = [&](std::int64_t entry, const std::string& what) {
    throw Error(ErrorKind::input, fmt::format("{}: {}", place(entry), what));
  };
  require_host_memory(32 * std::ssize(list), "the list of mid-edge nodes");
  for (std::int64_t i = 0; i < std::ssize(list); ++i) {
    auto& [node, a, b] = list[static_cast<std::size_t>(i)];
    for (const std::int64_t number : {node, a, b})
      if (number < 0 || number >= nodes) fail(i, fmt::format("there is no node {}; they are 0 to {}", number, nodes - 1));
    if (a > b) std::swap(a, b);
    if (a == b) fail(i, fmt::format("both ends of the edge are node {}", a));
  }
  std::vector<std::int64_t> order(list.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const auto entry = [&](std::int64_t i) -> const MidEdge& { return list[static_cast<std::size_t>(i)]; };
  if (!std::is_sorted(list.begin(), list.end()))
    std::sort(order.begin(), order.end(),
              [&](std::int64_t i, std::int64_t j) { return std::pair(entry(i), i) < std::pair(entry(j), j); });
  std::vector<bool> in_middle(static_cast<std::size_t>(nodes), false);
  std::vector<MidEdge> sorted;
  sorted.reserve(list.size());
  for (const std::int64_t i : order) {
    const auto node = static_cast<std::size_t>(entry(i)[0]);
    if (in_middle[node]) fail(i, fmt::format("node {} comes twice", node));
    in_middle[node] = true;
    sorted.push_back(entry(i));
  }
  for (std::int64_t i = 0; i < std::ssize(list); ++i)
    for (const std::int64_t end : {entry(i)[1], entry(i)[2]})
      if (in_middle[static_cast<std::size_t>(end)])
        fail(i, fmt::format("node {} is the end of an edge, and in the middle of another one", end));
  return sorted;
}

}  // namespace shardmat
