// Page-locked memory of somebody else.
#pragma once

#include <cstddef>

#include "kernels/base/device.h"

namespace shardmat {

/// Keeps memory of somebody else page-locked, so that a GPU copies it at the full speed of the bus. Locking takes all its
/// pages, and as long as writing them. On the host it does nothing. Move-only.
class PageLock {
 public:
  PageLock() = default;
  /// REQUIRES: the memory outlives the lock, and no part is locked already. Throws Error(resources) if the system does not
  /// allow it.
  PageLock(Device device, void* data, std::size_t bytes);
  ~PageLock();
  PageLock(PageLock&&) noexcept;
  PageLock& operator=(PageLock&&) noexcept;

 private:
  Device device_;
  void* data_ = nullptr;  ///< null: nothing is locked
};

}  // namespace shardmat
