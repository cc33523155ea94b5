// Vectors of requests for ranks that are not on the front end's host, "home". Each other host has memory of the same size as
// the arena and as each client's memory, shared by its ranks. Before a command reads entries there, they are copied to the
// same places; after it has written some, they are copied back. So all else is alike on all hosts.
//
// Between two hosts goes one message, with the entries of all ranks of the other host in all columns; several, if these are
// large. It goes between a rank at home, a different one for each host, and the first rank of the other host.
//
// Collective over all ranks, which carry out the same commands in the same order. Threads: one thread of each rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/host_vector.h"
#include "kernels/base/types.h"
#include "runtime/maps/row_map.h"
#include "runtime/service/wire/arena.h"

namespace shardmat::service {

class OtherHosts {
 public:
  /// There is none: nothing is ever copied.
  OtherHosts() = default;
  /// `home`: the name of the front end's host. `ranks` outlives this object. Collective.
  OtherHosts(Communicator& ranks, const std::string& home);

  bool exist() const { return !hosts_.empty(); }
  bool at_home() const { return !host_; }

  /// Memory that the ranks of this host share, of zeros; nothing at home. The same error on all ranks: Error(resources).
  std::optional<Arena> make_memory(std::uint64_t bytes);

  /// Each column is a vector of the map's size, at the same place on all hosts. Entries of the map's rows on other hosts are
  /// copied there.
  void fetch(std::span<std::byte* const> columns, const RowMap& map, ValueType type);
  /// The opposite. A rank has written its entries before it calls.
  void deliver(std::span<std::byte* const> columns, const RowMap& map, ValueType type);
  /// Bytes from `first` to `end`, of each rank, of memory that begins at `data`.
  struct Range {
    std::size_t first = 0, end = 0;
  };
  void fetch(std::byte* data, std::span<const Range> of_ranks);

 private:
  struct Host {
    std::vector<int> ranks;
    int partner = 0;  ///< the rank at home
  };
  /// What the ranks of a host have of a map; known to its first rank and to its partner.
  struct Entries {
    std::int64_t first = 0, count = 0;  ///< of a range
    HostVector<std::int64_t> ids;       ///< in place of a range, if not empty
  };
  bool takes_part(const Host& host) const;
  void remember(const RowMap& map);
  const Entries& entries_of(std::size_t host, const RowMap& map);
  Entries gather_entries(const Host& host, const RowMap& map);
  void move(const Host& host, const Entries& entries, std::span<std::byte* const> columns, ValueType type, bool to_host);
  void transfer(std::byte* data, std::size_t bytes, int from, int to);
  /// The first rank of a host tells the others that all is there, or hears it from them.
  void tell_others(const Host& host);
  void hear_others(const Host& host);

  Communicator* ranks_ = nullptr;
  std::vector<Host> hosts_;                                         ///< but home
  std::optional<std::size_t> host_;                                 ///< this rank's; nothing at home
  std::set<std::uint64_t> maps_;                                    ///< numbers of maps that are known to all that need them
  std::map<std::pair<std::uint64_t, std::size_t>, Entries> known_;  ///< by number of the map, and host
  HostVector<std::byte> staging_;  ///< entries of columns in a message, unless they are those of one column and a range
};

}  // namespace shardmat::service
