// Which entries of x ranks give each other when each gets only what its rows need.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "comm/exchange/x_parts.h"

namespace shardmat {

/// In x the own entries come first, in their order, and then, a little apart, those of other ranks.
struct Halo {
  /// Entries [first, first + count) of `entries`, or of `sent`, belong to this rank.
  struct Peer {
    int rank;
    std::int64_t first, count;
  };
  static constexpr std::int64_t kApart = 64;  ///< entries of 2 bytes or more fill 128

  std::vector<Peer> from, to;       ///< none with 0 entries; from: ascending ranks
  std::int64_t begin = 0, own = 0;  ///< this rank owns the columns [begin, begin + own)
  std::int64_t received = 0;        ///< entries of other ranks
  /// Places among the own entries, by receiver: first what the next higher rank needs, so that ranks do not all send to the
  /// same one first.
  std::vector<std::int32_t> sent;
  std::vector<std::int64_t> entries;     ///< columns that come, ascending, so by owner
  std::vector<std::int32_t> own_places;  ///< of the own columns; empty: in their order

  /// Where they begin in x: in a cache line of their own, so that who reads own entries beside their arrival does not keep
  /// stale ones.
  std::int64_t first_received() const { return (own + kApart - 1) / kApart * kApart; }
  std::int64_t length() const { return first_received() + received; }
  /// Columns become positions in x. Throws Error(internal) for a column that is neither own nor among the entries.
  void renumber(std::span<std::int64_t> columns) const;
  /// Gives up `entries` and `own_places`, which only renumber() needs.
  void forget_columns();
};

/// Collective; every rank holds what it needs and gives, and a number or two a rank. `columns`: as in make_column_map().
Halo make_halo(Communicator& communicator, const XParts& parts, std::span<const std::int64_t> columns);

/// Where a rank writes what it sends into x of the others.
struct SentPlaces {
  std::vector<std::uint8_t> receivers;  ///< ranks, of each entry of Halo::sent
  std::vector<std::int64_t> shifts;     ///< one a rank: entry i goes to place i + shifts[receiver] of its x
};
/// Collective. REQUIRES: at most 256 ranks.
SentPlaces find_sent_places(Communicator& communicator, const Halo& halo);

}  // namespace shardmat
