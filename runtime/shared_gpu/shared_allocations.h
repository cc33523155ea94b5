// Allocations on a GPU that feeders pass on to their owner (CUDA IPC). Opening one takes long, so the owner keeps it open as
// long as the feeder has it, as is said in each call.
//
// Threads: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "kernels/base/device_sharing.h"

namespace shardmat {

class SharedAllocations {
 public:
  /// How many allocations of a feeder are kept open at most.
  static constexpr std::size_t kMost = 64;

  /// How a feeder names an allocation to its owner.
  struct Name {
    std::uint64_t number = 0;  ///< given once
    DeviceMemoryHandle handle;
  };

  /// On a feeder. REQUIRES: address.can_be_shared.
  Name pass_on(const DeviceAddress& address, Device device);
  /// On a feeder: writes the numbers of the allocations that the owner may keep open, and returns how many there are.
  std::size_t list_kept(std::span<std::uint64_t, kMost> numbers, Device device);

  /// On an owner: closes all allocations of the feeder at `place` but these.
  void close_others(int place, std::span<const std::uint64_t> kept);
  /// On an owner: where an allocation of a feeder lies in this process, until a later call. `stream` works on allocations
  /// that were opened before: if CUDA opens no more of them, they are closed when it is done.
  std::byte* open(int place, const Name& name, Stream& stream);

  /// On an owner: memory that grows on demand, for matrix `index` of a call. Throws Error(resources).
  void* room(std::size_t index, Device device, std::size_t bytes);

 private:
  struct Passed {
    const std::byte* base;
    std::uint64_t allocation;  ///< as DeviceAddress::allocation
    Name name;
    std::uint64_t last_used;
  };
  std::vector<Passed> passed_;
  std::uint64_t uses_ = 0, numbers_ = 0;
  std::map<std::pair<int, std::uint64_t>, OpenedMemory> opened_;  ///< by place and number
  std::map<std::size_t, Buffer> rooms_;
};

}  // namespace shardmat
