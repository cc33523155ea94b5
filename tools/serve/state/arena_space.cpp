#include "tools/serve/state/arena_space.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace shardmat::serve {
namespace {

constexpr std::uint64_t kAlignment = 64;

/// REQUIRES: `bytes` is not larger than the arena.
std::uint64_t rounded(std::uint64_t bytes) {
  return std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

}  // namespace

ArenaSpace::Lease::~Lease() {
  if (!is_aside_) space_->used_ -= held_;
  if (held_ + reserved_ > 0) space_->give_back(offset_, held_ + reserved_);
}

bool ArenaSpace::Lease::hold(std::uint64_t bytes) {
  if (bytes > space_->bytes_) return false;
  const std::uint64_t more = std::max(rounded(bytes), held_) - held_;
  if (more > reserved_ && (reserved_ > 0 || held_ == 0 || !space_->take_free_at(end(), more))) return false;
  held_ += more, space_->used_ += more;
  if (reserved_ == 0) return true;
  reserved_ -= more;
  if (reserved_ == 0) unlink();
  return true;
}

void ArenaSpace::Lease::set_aside() {
  if (std::exchange(is_aside_, true)) return;
  space_->used_ -= held_;
  charge.reset();
}

std::unique_ptr<ArenaSpace::Lease> ArenaSpace::reserve(std::uint64_t bytes) {
  if (bytes > bytes_) return nullptr;
  const auto offset = take_range(rounded(bytes));
  if (!offset) return nullptr;
  auto lease = std::make_unique<Lease>(*this, *offset, rounded(bytes));
  reserving_.push_back(*lease);
  return lease;
}

std::unique_ptr<ArenaSpace::Lease> ArenaSpace::keep(std::uint64_t bytes) {
  if (bytes > bytes_) return nullptr;
  const auto offset = take_unreserved(rounded(bytes));
  if (!offset) return nullptr;
  auto lease = std::make_unique<Lease>(*this, *offset, 0);
  lease->held_ = rounded(bytes), lease->is_aside_ = true;
  return lease;
}

std::optional<std::uint64_t> ArenaSpace::take_range(std::uint64_t bytes) {
  auto offset = take_unreserved(bytes);
  while (!offset && !reserving_.empty()) {
    cut(reserving_.front());
    offset = take_free(bytes);
  }
  return offset;
}

std::optional<std::uint64_t> ArenaSpace::take_unreserved(std::uint64_t bytes) {
  auto offset = take_free(bytes);
  while (!offset && make_room && make_room()) offset = take_free(bytes);
  return offset;
}

std::optional<std::uint64_t> ArenaSpace::take_free(std::uint64_t bytes) {
  for (const auto& [offset, size] : free_)
    if (size >= bytes) {
      const std::uint64_t found = offset;
      take_free_at(found, bytes);
      return found;
    }
  return std::nullopt;
}

/// False if the bytes from there on are not free.
bool ArenaSpace::take_free_at(std::uint64_t offset, std::uint64_t bytes) {
  const auto range = free_.find(offset);
  if (range == free_.end() || range->second < bytes) return false;
  auto taken = free_.extract(range);  // what is left keeps the memory of the entry
  taken.key() += bytes, taken.mapped() -= bytes;
  if (taken.mapped() > 0) free_.insert(std::move(taken));
  return true;
}

/// Takes the reserved part away.
void ArenaSpace::cut(Lease& lease) {
  lease.unlink();
  give_back(lease.offset_ + lease.held_, std::exchange(lease.reserved_, 0));
}

void ArenaSpace::give_back(std::uint64_t offset, std::uint64_t bytes) {
  const auto next = free_.lower_bound(offset);
  const bool joins_next = next != free_.end() && offset + bytes == next->first;
  if (next != free_.begin())
    if (const auto before = std::prev(next); before->first + before->second == offset) {
      before->second += bytes;
      if (!joins_next) return;
      before->second += next->second;
      free_.erase(next);
      return;
    }
  if (!joins_next) {
    free_.emplace_hint(next, offset, bytes);
    return;
  }
  auto grown = free_.extract(next);
  grown.key() = offset, grown.mapped() += bytes;
  free_.insert(std::move(grown));
}

}  // namespace shardmat::serve
