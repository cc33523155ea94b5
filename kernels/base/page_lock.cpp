#include "kernels/base/page_lock.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "kernels/base/device_cuda.h"
#include "kernels/base/error.h"
#include "kernels/base/text.h"

namespace shardmat {

PageLock::PageLock(Device device, void* data, std::size_t bytes) : device_(device) {
  if (device.backend == Backend::host || bytes == 0) return;
  const DeviceGuard guard(device);
  const std::string why_not = cuda::lock_pages(data, bytes);
  if (!why_not.empty())
    throw Error(ErrorKind::resources,
                fmt::format("cannot page-lock {}: {}", human_bytes(static_cast<double>(bytes)), why_not));
  data_ = data;
}
PageLock::~PageLock() {
  if (data_ == nullptr) return;
  const DeviceGuard guard(device_, std::nothrow);
  cuda::unlock_pages(data_);
}
PageLock::PageLock(PageLock&& other) noexcept : device_(other.device_), data_(std::exchange(other.data_, nullptr)) {}
PageLock& PageLock::operator=(PageLock&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  return *this;
}

}  // namespace shardmat
