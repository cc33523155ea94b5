// The memory in which columns of products lie: the arena, and memories of clients that their connections share with the
// service. A client can write its own at any time, so it has numbers of vectors and nothing else.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "runtime/service/arena.h"
#include "runtime/service/command.h"

namespace shardmat::service {

class Memories {
 public:
  /// REQUIRES: the arena outlives this object.
  Memories(const Arena& arena) : arena_(&arena) {}

  /// REQUIRES: there is no memory with this number.
  void attach(std::uint64_t number, Arena memory);
  /// Does nothing if there is no such memory.
  void detach(std::uint64_t number) { clients_.erase(number); }

  const Arena& arena() const { return *arena_; }
  /// Bytes at a place that is no vector. Throws Error(internal) for a range that is not inside, or an unknown memory.
  std::span<std::byte> at(const Place& place, std::uint64_t bytes) const;

 private:
  const Arena* arena_;
  std::map<std::uint64_t, Arena> clients_;  ///< by number
};

}  // namespace shardmat::service
