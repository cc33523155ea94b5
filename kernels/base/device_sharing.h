// Memory of a GPU that several processes of a host use: one process allocates it and passes a handle on, the others open the
// handle (CUDA IPC).
//
// Threads: any thread, several at a time; an OpenedMemory belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/device.h"

namespace shardmat {

/// What CUDA knows of an address.
struct DeviceAddress {
  enum class Kind {
    unknown,  ///< not memory of CUDA
    host,     ///< page-locked memory of the host
    managed,  ///< moves between host and devices
    device,
  };
  Kind kind = Kind::unknown;
  int ordinal = -1;              ///< of the device, as this process numbers them
  std::byte* base = nullptr;     ///< where the allocation begins
  std::size_t bytes = 0;         ///< of the allocation
  std::uint64_t allocation = 0;  ///< its number, which no other allocation of this process gets, not even later
  bool can_be_shared = false;    ///< cudaMalloc() made it; false for pools, virtual memory management, managed memory
};
/// REQUIRES: `device` is used by this process.
DeviceAddress find_address(const void* address, Device device);
/// The number of the allocation at this address; 0 if there is none any more.
std::uint64_t allocation_at(const void* address, Device device);

/// A name of an allocation for other processes of the same host and user.
struct DeviceMemoryHandle {
  unsigned char bytes[64] = {};
};
/// `base`: where an allocation that can be shared begins. Throws Error(resources) where the driver does not share memory.
DeviceMemoryHandle share_memory(void* base, Device device);

/// An allocation of another process, mapped in this one while the object lives. Move-only.
class OpenedMemory {
 public:
  /// Throws Error(resources) with what CUDA says if the handle cannot be opened.
  OpenedMemory(const DeviceMemoryHandle& handle, Device device);
  ~OpenedMemory();
  OpenedMemory(OpenedMemory&& other) noexcept;
  OpenedMemory& operator=(OpenedMemory&&) = delete;
  std::byte* data() const { return data_; }

 private:
  Device device_;
  std::byte* data_ = nullptr;
};

/// Waits for all work that this process has given to the default streams of the device.
void wait_for_default_streams(Device device);

}  // namespace shardmat
