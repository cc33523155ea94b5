// Which entries of x ranks give each other when each gets only what its rows need.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"

namespace shardmat {

struct Halo {
  /// Entries [first, first + count) of `entries`, or of `sent`, belong to this rank.
  struct Peer {
    int rank;
    std::int64_t first, count;
  };
  std::vector<Peer> from, to;          ///< ascending ranks; none with 0 entries
  std::vector<std::int64_t> entries;   ///< columns that come, ascending, so by owner
  std::vector<std::int32_t> sent;      ///< places among the own entries, by receiver
};

/// Collective; every rank holds what it needs and gives, and a number or two a rank. Part p of x owns the columns
/// [starts[p], starts[p + 1]). `needed`: columns of other parts, ascending and distinct. `places`: where the columns of this
/// rank's part lie among its entries; empty: in their order.
Halo make_halo(Communicator& communicator, std::span<const std::int64_t> starts, std::vector<std::int64_t> needed,
               std::span<const std::int32_t> places);

}  // namespace shardmat
