#include "runtime/service/memories.h"

#include <fmt/format.h>

#include <utility>

#include "kernels/base/error.h"

namespace shardmat::service {

void Memories::attach(std::uint64_t number, Arena memory) { clients_.emplace(number, std::move(memory)); }

std::span<std::byte> Memories::at(const Place& place, std::uint64_t bytes) const {
  if (place.memory == 0) return arena_->at(place.offset, bytes);
  const auto found = clients_.find(place.memory);
  if (found == clients_.end())
    throw Error(ErrorKind::internal, fmt::format("the ranks do not have the memory {} of a client", place.memory));
  return found->second.at(place.offset, bytes);
}

}  // namespace shardmat::service
