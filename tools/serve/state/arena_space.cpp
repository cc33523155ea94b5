#include "tools/serve/state/arena_space.h"

#include <algorithm>
#include <iterator>

namespace shardmat::serve {

std::unique_ptr<ArenaSpace::Lease> ArenaSpace::take(std::uint64_t bytes) {
  constexpr std::uint64_t kAlignment = 64;
  if (bytes > bytes_) return nullptr;
  bytes = std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    const auto [offset, size] = *range;
    if (size < bytes) continue;
    auto lease = std::make_unique<Lease>(*this, offset, bytes);
    free_.erase(range);
    if (size > bytes) free_.emplace(offset + bytes, size - bytes);
    used_ += bytes;
    return lease;
  }
  return nullptr;
}

void ArenaSpace::give_back(std::uint64_t offset, std::uint64_t bytes) {
  used_ -= bytes;
  auto range = free_.emplace(offset, bytes).first;
  if (const auto next = std::next(range); next != free_.end() && range->first + range->second == next->first) {
    range->second += next->second;
    free_.erase(next);
  }
  if (range == free_.begin()) return;
  const auto before = std::prev(range);
  if (before->first + before->second != range->first) return;
  before->second += range->second;
  free_.erase(range);
}

}  // namespace shardmat::serve
