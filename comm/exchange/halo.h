// Which entries of x the ranks send each other if each rank receives only the entries that its rows need.
//
// Threads: one thread at a time makes or changes a halo; several may read it at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "comm/exchange/x_parts.h"
#include "kernels/base/number_view.h"

namespace shardmat {

/// x holds this rank's own entries, then padding, then the received entries, sorted by column.
struct Halo {
  /// The entries [first, first + count) of `entries` (in `from`) or of `sent` (in `to`) belong to `rank`.
  struct Peer {
    int rank;
    std::int64_t first, count;
  };
  static constexpr std::int64_t kApart = 64;  ///< in entries: at least 128 bytes, as an entry has at least 2

  std::vector<Peer> from, to;       ///< ranks without entries are left out; `from` has ascending ranks
  std::int64_t begin = 0, own = 0;  ///< this rank owns the columns [begin, begin + own)
  std::int64_t received = 0;        ///< number of received entries
  /// Positions of the sent entries among the own entries, by receiver. The next higher rank comes first, so that the ranks
  /// do not all send to the same rank first.
  std::vector<std::int32_t> sent;
  std::vector<std::int64_t> entries;     ///< columns of the received entries, ascending, hence sorted by owner
  std::vector<std::int32_t> own_places;  ///< positions of the own columns in x; empty: column begin + i has position i
  bool owns_all = false;                 ///< no other rank owns a column

  /// Position of the first received entry in x. It starts a new cache line: a kernel that reads own entries while others
  /// arrive must not cache stale received entries.
  std::int64_t first_received() const { return (own + kApart - 1) / kApart * kApart; }
  std::int64_t length() const { return first_received() + received; }
  /// Replaces global columns by positions in x. Throws Error(internal) for a column that is neither own nor received.
  void renumber(std::span<std::int64_t> columns) const;
  void renumber(std::span<std::int32_t> columns) const;
  /// True if every column is its own position, so that renumber() changes nothing.
  bool keeps_columns() const { return owns_all && own_places.empty(); }
  /// Frees `entries` and `own_places`, which only renumber() needs.
  void forget_columns();
};

/// What a rank that owns the columns [begin, begin + own) receives from other ranks, which need not exist: everything but
/// `from`, `to` and `sent`. `columns`: as in make_column_map().
Halo find_halo(std::int64_t begin, std::int64_t own, const ColumnView& columns);

/// Collective. `columns`: as in make_column_map(). Memory of a rank grows with the entries that it receives and sends, and
/// by a few bytes for each rank.
Halo make_halo(Communicator& communicator, const XParts& parts, const ColumnView& columns);

/// What a rank sends to ranks of other hosts if it sends each receiver, one of `to`, what this receiver needs.
Communicator::Sent to_other_hosts(const Communicator& communicator, const std::vector<Halo::Peer>& to,
                                  std::size_t entry_bytes);

/// Where the sent entries lie in x of their receivers.
struct SentPlaces {
  std::vector<std::uint8_t> receivers;  ///< receiving rank of each entry of Halo::sent
  std::vector<std::int64_t> shifts;     ///< one for each rank: sent entry i goes to position i + shifts[receiver] of its x
};
/// Collective. REQUIRES: at most 256 ranks.
SentPlaces find_sent_places(Communicator& communicator, const Halo& halo);

}  // namespace shardmat
