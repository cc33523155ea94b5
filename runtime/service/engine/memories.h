// The memory in which columns of products lie: the arena, and memories of clients that their connections share with the
// service. A client can write its own at any time, so it has numbers of vectors and nothing else.
//
// For a GPU the pages are locked: those of a client's memory when it comes, those of the arena from its start to the
// furthest place that was used, which is close because the front end places vectors as low as they fit.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "kernels/base/page_lock.h"
#include "runtime/service/engine/other_hosts.h"
#include "runtime/service/wire/arena.h"
#include "runtime/service/wire/command.h"

namespace shardmat::service {

class Memories {
 public:
  /// REQUIRES: the arena, and the other hosts if there are some, outlive this object.
  explicit Memories(const Arena& arena, Device device = {}, OtherHosts* others = nullptr)
      : device_(device), arena_(&arena), others_(others != nullptr && others->exist() ? others : nullptr) {}

  /// REQUIRES: there is no memory with this number.
  void attach(std::uint64_t number, Arena memory);
  /// Does nothing if there is no such memory. REQUIRES: no copy from or to it is under way.
  void detach(std::uint64_t number) { clients_.erase(number); }

  const Arena& arena() const { return *arena_; }
  /// Bytes at a place that is no vector. Throws Error(internal) for a range that is not inside, or an unknown memory.
  /// REQUIRES: no copy from or to the arena is under way.
  std::span<std::byte> at(const Place& place, std::uint64_t bytes);

  /// Columns of the map's size, at places that are no vectors, are about to be read, or were written, by ranks that are
  /// perhaps on other hosts (OtherHosts). Collective. REQUIRES: as at().
  void fetch(std::span<const Place> columns, const RowMap& map, ValueType type);
  void deliver(std::span<const Place> columns, const RowMap& map, ValueType type);
  /// The same for bytes of the arena from `offset` on, of which each rank is about to read a range.
  void fetch_ranges(std::uint64_t offset, std::span<const OtherHosts::Range> of_ranks);

 private:
  struct Client {
    Arena memory;
    PageLock lock;  ///< behind the memory, so that it ends first
  };
  /// Says once why pages cannot be locked; copies then take longer.
  PageLock lock(const Arena& arena, std::uint64_t bytes);
  void lock_arena(std::uint64_t bytes);
  std::vector<std::byte*> data_of(std::span<const Place> columns, const RowMap& map, ValueType type);

  Device device_;
  const Arena* arena_;
  OtherHosts* others_;  ///< null: there are none
  PageLock arena_lock_;
  std::uint64_t arena_locked_ = 0;           ///< bytes from its start
  bool may_lock_ = true;                     ///< until the system refuses
  std::map<std::uint64_t, Client> clients_;  ///< by number
};

}  // namespace shardmat::service
