// What all ranks must free together, although destructors run on each rank by themselves.
//
// Threads: as Context.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "comm/communicator.h"

namespace shardmat {

class Leftovers {
 public:
  /// A number for something that is made, from 1; the same on all ranks, which call it in the same order.
  std::uint64_t number() { return ++last_; }
  /// From a destructor. `free` is collective; it is called once all ranks have left this number, or never.
  void leave(std::uint64_t number, std::function<void()> free) { left_.emplace(number, std::move(free)); }
  /// Frees what all ranks have left, in the order of the numbers. No message if nothing was ever numbered. Collective.
  void free(Communicator& ranks);

 private:
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::function<void()>> left_;
};

}  // namespace shardmat
