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

#include "kernels/base/page_lock.h"
#include "runtime/service/wire/arena.h"
#include "runtime/service/wire/command.h"

namespace shardmat::service {

class Memories {
 public:
  /// REQUIRES: the arena outlives this object.
  Memories(const Arena& arena, Device device = {}) : device_(device), arena_(&arena) {}

  /// REQUIRES: there is no memory with this number.
  void attach(std::uint64_t number, Arena memory);
  /// Does nothing if there is no such memory. REQUIRES: no copy from or to it is under way.
  void detach(std::uint64_t number) { clients_.erase(number); }

  const Arena& arena() const { return *arena_; }
  /// Bytes at a place that is no vector. Throws Error(internal) for a range that is not inside, or an unknown memory.
  /// REQUIRES: no copy from or to the arena is under way.
  std::span<std::byte> at(const Place& place, std::uint64_t bytes);

 private:
  struct Client {
    Arena memory;
    PageLock lock;  ///< behind the memory, so that it ends first
  };
  /// Says once why pages cannot be locked; copies then take longer.
  PageLock lock(const Arena& arena, std::uint64_t bytes);
  void lock_arena(std::uint64_t bytes);

  Device device_;
  const Arena* arena_;
  PageLock arena_lock_;
  std::uint64_t arena_locked_ = 0;           ///< bytes from its start
  bool may_lock_ = true;                     ///< until the system refuses
  std::map<std::uint64_t, Client> clients_;  ///< by number
};

}  // namespace shardmat::service
