#include "runtime/service/engine/memories.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/print_error.h"

namespace shardmat::service {
namespace {

/// The arena's lock grows by so much at least, and by half of what is locked: each time, all of it is locked anew.
constexpr std::uint64_t kLeastGrowth = 64 << 20;

}  // namespace

PageLock Memories::lock(const Arena& arena, std::uint64_t bytes) {
  if (device_.backend == Backend::host || !may_lock_) return {};
  try {
    return PageLock(device_, arena.at(0, bytes).data(), bytes);
  } catch (const Error& why) {
    may_lock_ = false;
    print_error("shardmat: {}; copies between clients and the GPU take longer\n", why.what());
    return {};
  }
}

void Memories::lock_arena(std::uint64_t bytes) {
  const std::uint64_t wanted = bytes + std::max(kLeastGrowth, arena_locked_ / 2);
  arena_lock_ = {};
  arena_locked_ = std::min(arena_->bytes(), wanted);
  arena_lock_ = lock(*arena_, arena_locked_);
}

void Memories::attach(std::uint64_t number, Arena memory) {
  PageLock locked = lock(memory, memory.bytes());
  clients_.emplace(number, Client{std::move(memory), std::move(locked)});
}

std::span<std::byte> Memories::at(const Place& place, std::uint64_t bytes) {
  if (place.memory == 0) {
    const std::span<std::byte> range = arena_->at(place.offset, bytes);
    if (device_.backend == Backend::cuda && place.offset + bytes > arena_locked_) lock_arena(place.offset + bytes);
    return range;
  }
  const auto found = clients_.find(place.memory);
  if (found == clients_.end())
    throw Error(ErrorKind::internal, fmt::format("the ranks do not have the memory {} of a client", place.memory));
  return found->second.memory.at(place.offset, bytes);
}

std::vector<std::byte*> Memories::data_of(std::span<const Place> columns, const RowMap& map, ValueType type) {
  std::vector<std::byte*> data;
  for (const Place& place : columns)
    data.push_back(at(place, static_cast<std::uint64_t>(map.size()) * size_of(type)).data());
  return data;
}

void Memories::fetch(std::span<const Place> columns, const RowMap& map, ValueType type) {
  if (others_ != nullptr) others_->fetch(data_of(columns, map, type), map, type);
}

void Memories::deliver(std::span<const Place> columns, const RowMap& map, ValueType type) {
  if (others_ != nullptr) others_->deliver(data_of(columns, map, type), map, type);
}

void Memories::fetch_ranges(std::uint64_t offset, std::span<const OtherHosts::Range> of_ranks) {
  if (others_ == nullptr) return;
  std::size_t end = 0;
  for (const OtherHosts::Range& range : of_ranks) end = std::max(end, range.end);
  others_->fetch(at({0, offset, 0}, end).data(), of_ranks);
}

}  // namespace shardmat::service
