#include "runtime/shared_gpu/shared_allocations.h"

#include <algorithm>

#include "kernels/base/error.h"

namespace shardmat {

SharedAllocations::Name SharedAllocations::pass_on(const DeviceAddress& address, Device device) {
  for (Passed& one : passed_)
    if (one.base == address.base && one.allocation == address.allocation) return one.last_used = ++uses_, one.name;
  if (passed_.size() == kMost)
    passed_.erase(std::min_element(passed_.begin(), passed_.end(),
                                   [](const Passed& a, const Passed& b) { return a.last_used < b.last_used; }));
  passed_.push_back({address.base, address.allocation, {numbers_ + 1, share_memory(address.base, device)}, ++uses_});
  ++numbers_;
  return passed_.back().name;
}

std::size_t SharedAllocations::list_kept(std::span<std::uint64_t, kMost> numbers, Device device) {
  std::erase_if(passed_, [&](const Passed& one) { return allocation_at(one.base, device) != one.allocation; });
  std::transform(passed_.begin(), passed_.end(), numbers.begin(), [](const Passed& one) { return one.name.number; });
  return passed_.size();
}

void SharedAllocations::close_others(int place, std::span<const std::uint64_t> kept) {
  for (auto one = opened_.begin(); one != opened_.end();) {
    const auto& [of, number] = one->first;
    if (of != place || std::find(kept.begin(), kept.end(), number) != kept.end()) ++one;
    else one = opened_.erase(one);
  }
}

std::byte* SharedAllocations::open(int place, const Name& name, Stream& stream) {
  const std::pair<int, std::uint64_t> key(place, name.number);
  if (const auto found = opened_.find(key); found != opened_.end()) return found->second.data();
  const auto try_it = [&] { return opened_.emplace(key, OpenedMemory(name.handle, stream.device())).first->second.data(); };
  if (opened_.empty()) return try_it();
  try {
    return try_it();
  } catch (const Error&) {
    stream.synchronize();
    opened_.clear();
    return try_it();
  }
}

void* SharedAllocations::room(std::size_t index, Device device, std::size_t bytes) {
  Buffer& buffer = rooms_[index];
  if (buffer.bytes() < bytes) {
    buffer = Buffer();
    require_memory(device, static_cast<std::int64_t>(bytes), "what the ranks that share the GPU hand over");
    buffer = Buffer(device, bytes);
  }
  return buffer.data();
}

}  // namespace shardmat
