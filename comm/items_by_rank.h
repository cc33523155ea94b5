// Sends any number of items from each rank to each rank.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/host_vector.h"
#include "kernels/base/memory_limits.h"

namespace shardmat {

/// counts[p] items for rank p, or from rank p. Items lie in rank order.
template <class T>
struct ItemsByRank {
  std::vector<std::int64_t> counts;
  HostVector<T> items;
};

/// Sorts items by their receiver, rank to(item). Items for one rank keep their order.
template <class T, class F>
ItemsByRank<T> sort_by_rank(std::span<const T> items, int ranks, F&& to) {
  ItemsByRank<T> sorted_items{std::vector<std::int64_t>(static_cast<std::size_t>(ranks)), HostVector<T>(items.size())};
  for (const T& item : items) ++sorted_items.counts[static_cast<std::size_t>(to(item))];
  std::vector<std::int64_t> next(sorted_items.counts.size());
  std::exclusive_scan(sorted_items.counts.begin(), sorted_items.counts.end(), next.begin(), std::int64_t{0});
  for (const T& item : items)
    sorted_items.items[static_cast<std::size_t>(next[static_cast<std::size_t>(to(item))]++)] = item;
  return sorted_items;
}

/// Sends every rank its items and returns the items for this rank, in the order of the senders. Collective.
template <class T>
ItemsByRank<T> send_items(Communicator& communicator, const ItemsByRank<T>& out) {
  static_assert(std::is_trivially_copyable_v<T>);
  constexpr int kTag = 25;
  ItemsByRank<T> in{communicator.all_to_all(out.counts), {}};
  communicator.run_agreed([&] {
    const auto count = std::accumulate(in.counts.begin(), in.counts.end(), std::int64_t{0});
    require_host_memory(static_cast<std::int64_t>(sizeof(T)) * count, "what other ranks send");
    in.items.resize(static_cast<std::size_t>(count));
  });
  std::vector<Communicator::Transfer::Outgoing> sends;
  std::vector<Communicator::Transfer::Incoming> receives;
  const T* from = out.items.data();
  T* to = in.items.data();
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const auto given = static_cast<std::size_t>(out.counts[static_cast<std::size_t>(rank)]);
    const auto taken = static_cast<std::size_t>(in.counts[static_cast<std::size_t>(rank)]);
    sends.push_back({rank, from, given * sizeof(T)});
    receives.push_back({rank, to, taken * sizeof(T)});
    from += given, to += taken;
  }
  Communicator::Transfer transfer = communicator.start(sends, receives, kTag);
  communicator.finish(transfer);
  return in;
}

}  // namespace shardmat
