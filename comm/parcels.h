// Items of any number for every rank.
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

/// counts[p] items for rank p, or from it; one rank's after the other's.
template <class T>
struct Parcels {
  std::vector<std::int64_t> counts;
  HostVector<T> items;
};

/// Items in their order, each for the rank to(item).
template <class T, class F>
Parcels<T> sort_by_rank(std::span<const T> items, int ranks, F&& to) {
  Parcels<T> parcels{std::vector<std::int64_t>(static_cast<std::size_t>(ranks)), HostVector<T>(items.size())};
  for (const T& item : items) ++parcels.counts[static_cast<std::size_t>(to(item))];
  std::vector<std::int64_t> next(parcels.counts.size());
  std::exclusive_scan(parcels.counts.begin(), parcels.counts.end(), next.begin(), std::int64_t{0});
  for (const T& item : items) parcels.items[static_cast<std::size_t>(next[static_cast<std::size_t>(to(item))]++)] = item;
  return parcels;
}

/// Collective: what every rank has for this one, in rank order.
template <class T>
Parcels<T> exchange(Communicator& communicator, const Parcels<T>& out) {
  static_assert(std::is_trivially_copyable_v<T>);
  constexpr int kTag = 25;
  Parcels<T> in{communicator.all_to_all(out.counts), {}};
  communicator.together([&] {
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
