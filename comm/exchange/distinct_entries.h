// Which entries of x the ranks of a host need of each rank, each entry once. Several ranks of a host often need the same.
//
// Threads: one thread at a time makes them; several may read them at once.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "comm/exchange/halo.h"

namespace shardmat {

/// What this rank has for the ranks of each host, its own host included, and what its host gets from other ranks.
struct DistinctEntries {
  /// The entries [first, first + count) of `sent` are those that ranks of `host` need.
  struct Host {
    int host;
    std::int64_t first, count;
  };
  std::vector<Host> to;            ///< hosts without entries are left out; the next host comes first, this host last
  std::vector<std::int32_t> sent;  ///< positions among this rank's own entries, by host; ascending and distinct for a host
  std::vector<std::int64_t> got;   ///< of each rank: number of entries that it has for this host
  /// Of each received entry of the halo: its number among the entries that its owner has for this host.
  std::vector<std::int32_t> numbers;
};

/// Collective. Memory of a rank grows with the entries that it receives and sends, and by a few bytes for each rank.
DistinctEntries find_distinct_entries(Communicator& communicator, const Halo& halo);

/// The ranks of each host, ascending.
std::vector<std::vector<int>> ranks_of_hosts(const Communicator& communicator);

}  // namespace shardmat
