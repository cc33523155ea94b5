#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kernels/base/narrow.h"
#include "kernels/formats/packed_spmm.h"
#include "kernels/formats/upload.h"
#include "kernels/matrix/halving.h"

namespace shardmat {
namespace {

constexpr std::int64_t kChunk = 8;       ///< columns that count as one
constexpr std::int32_t kCoarser = 8;     ///< chunks that count as one where clusters are compared
constexpr std::size_t kMostUsers = 256;  ///< clusters that a chunk can make neighbours
constexpr std::int32_t kMost = 2048;     ///< clusters that follow each other in their natural order

/// Lists one behind the other: list i is entry[first[i]] … entry[first[i + 1] - 1].
struct Lists {
  std::vector<std::int64_t> first{0};
  std::vector<std::int32_t> entry;

  std::int32_t count() const { return static_cast<std::int32_t>(first.size() - 1); }
  std::span<const std::int32_t> of(std::int32_t list) const {
    const auto i = static_cast<std::size_t>(list);
    return std::span(entry).subspan(static_cast<std::size_t>(first[i]), static_cast<std::size_t>(first[i + 1] - first[i]));
  }
  /// What was appended to `entry` since the last list, in any order and as often as it came, is a list: ascending, each
  /// once.
  void end_list() {
    const auto from = entry.begin() + first.back();
    std::sort(from, entry.end());
    entry.erase(std::unique(from, entry.end()), entry.end());
    first.push_back(std::ssize(entry));
  }
};

/// For each entry the lists that hold it, ascending.
Lists transposed(const Lists& lists) {
  Lists result;
  result.entry.resize(lists.entry.size());
  const std::int32_t entries = lists.entry.empty() ? 0 : *std::max_element(lists.entry.begin(), lists.entry.end()) + 1;
  result.first.resize(static_cast<std::size_t>(entries) + 1, 0);
  for (const std::int32_t entry : lists.entry) ++result.first[static_cast<std::size_t>(entry) + 1];
  for (std::size_t e = 1; e < result.first.size(); ++e) result.first[e] += result.first[e - 1];
  std::vector<std::int64_t> place(result.first.begin(), result.first.end() - 1);
  for (std::int32_t i = 0; i < lists.count(); ++i)
    for (const std::int32_t entry : lists.of(i))
      result.entry[static_cast<std::size_t>(place[static_cast<std::size_t>(entry)]++)] = i;
  return result;
}

/// Chunks of columns that every slice's shared slots need.
Lists needs_of_slices(const PackedStorage& a, Stream& stream) {
  const auto slices = download<PackedSlice>(a.slice, stream);
  const auto order = download<std::uint32_t>(a.order, stream);
  const auto deltas = download<std::int32_t>(a.deltas, stream);
  Lists needs;
  for (const PackedSlice& slice : slices) {
    const auto row = [&](std::uint32_t group) {
      const std::uint32_t at = slice.consecutive ? slice.groups + group : order[slice.groups + group];
      return static_cast<std::int64_t>(at) * a.shape.block - a.shape.shift;
    };
    if (!slice.csr && slice.real > 0) {
      const std::int64_t low = row(0), high = std::max(low, row(slice.real - 1U)) + a.shape.block - 1;
      for (std::uint32_t k = 0; k < slice.slots[kSharedSlot]; ++k) {
        const std::int64_t delta = deltas[slice.deltas + k];
        const std::int64_t from = std::max<std::int64_t>(low + delta, 0) / kChunk,
                           to = std::min(high + delta, a.cols - 1) / kChunk;
        for (std::int64_t c = from; c <= to && c < from + kPackedLanes; ++c)
          needs.entry.push_back(static_cast<std::int32_t>(c));
      }
    }
    needs.end_list();
  }
  return needs;
}

/// Each `cluster` neighbours in the order of items become one item, of coarser chunks.
Lists needs_of_clusters(const Lists& items, const std::vector<std::int32_t>& order, int cluster) {
  const auto size = static_cast<std::size_t>(cluster);
  Lists needs;
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const std::int32_t chunk : items.of(order[i])) needs.entry.push_back(chunk / kCoarser);
    if ((i + 1) % size == 0 || i + 1 == order.size()) needs.end_list();
  }
  return needs;
}

/// Clusters one after the other: the first item left, then always the one of whose chunks the greatest part is there.
std::vector<std::int32_t> cluster_greedily(const Lists& needs, int cluster) {
  const std::int32_t count = needs.count();
  const Lists users = transposed(needs);
  std::vector<std::int32_t> order, touched, in_cluster(users.first.size(), -1), shared(static_cast<std::size_t>(count), 0);
  std::vector<char> taken(static_cast<std::size_t>(count), 0);
  order.reserve(static_cast<std::size_t>(count));
  std::int32_t next = 0;
  const auto first_left = [&] {
    while (next < count && taken[static_cast<std::size_t>(next)]) ++next;
    return next;
  };
  for (std::int32_t number = 0; first_left() < count; ++number) {
    touched.clear();
    std::int32_t item = next;
    for (int member = 0; member < cluster && item < count; ++member) {
      taken[static_cast<std::size_t>(item)] = 1;
      order.push_back(item);
      for (const std::int32_t chunk : needs.of(item)) {
        if (std::exchange(in_cluster[static_cast<std::size_t>(chunk)], number) == number) continue;
        for (const std::int32_t other : users.of(chunk)) {
          if (taken[static_cast<std::size_t>(other)]) continue;
          if (shared[static_cast<std::size_t>(other)]++ == 0) touched.push_back(other);
        }
      }
      item = first_left();
      double best = 0;
      for (const std::int32_t other : touched) {
        if (taken[static_cast<std::size_t>(other)]) continue;
        const double part = shared[static_cast<std::size_t>(other)] / static_cast<double>(needs.of(other).size());
        if (part > best || (part == best && other < item)) best = part, item = other;
      }
    }
    for (const std::int32_t other : touched) shared[static_cast<std::size_t>(other)] = 0;
  }
  return order;
}

/// Items that need the same chunk are neighbours, unless so many do that this says nothing.
Adjacency neighbours(const Lists& needs) {
  const Lists users = transposed(needs);
  Adjacency graph;
  std::vector<std::int32_t> seen(static_cast<std::size_t>(needs.count()), -1);
  for (std::int32_t i = 0; i < needs.count(); ++i) {
    seen[static_cast<std::size_t>(i)] = i;
    graph.first.push_back(std::ssize(graph.neighbour));
    for (const std::int32_t chunk : needs.of(i)) {
      if (users.of(chunk).size() > kMostUsers) continue;
      for (const std::int32_t other : users.of(chunk))
        if (std::exchange(seen[static_cast<std::size_t>(other)], i) != i) graph.neighbour.push_back(other);
    }
    graph.degree.push_back(
        narrow<std::int32_t>(std::ssize(graph.neighbour) - graph.first.back(), "the neighbours of a cluster"));
  }
  return graph;
}

/// Columns from the first to the last that a slice needs, the mean over slices.
std::int64_t mean_reach(const Lists& needs) {
  std::int64_t sum = 0;
  for (std::int32_t slice = 0; slice < needs.count(); ++slice)
    if (const auto chunks = needs.of(slice); !chunks.empty()) sum += chunks.back() - chunks.front() + 1;
  return sum * kChunk / std::max(needs.count(), 1);
}

}  // namespace

std::vector<std::int32_t> clustered_slices(const PackedStorage& a, int cluster, std::int64_t window, Stream& stream) {
  const Lists slices = needs_of_slices(a, stream);
  const std::vector<std::int32_t> natural = cluster_greedily(slices, cluster);
  if (std::ssize(natural) <= std::int64_t{kMost} * cluster || mean_reach(slices) <= window) return natural;
  std::vector<std::int32_t> order;
  order.reserve(natural.size());
  const std::ptrdiff_t whole = std::ssize(natural) / cluster * cluster;  // a last, smaller cluster stays last
  for (const std::int32_t at : order_by_halving(neighbours(needs_of_clusters(slices, natural, cluster)), kMost)) {
    const std::ptrdiff_t first = std::ptrdiff_t{at} * cluster;
    if (first < whole) order.insert(order.end(), natural.begin() + first, natural.begin() + first + cluster);
  }
  order.insert(order.end(), natural.begin() + whole, natural.end());
  return order;
}

}  // namespace shardmat
