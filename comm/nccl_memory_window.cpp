// NcclCommunicator::Memory with symmetric windows (NCCL 2.27 and newer).
#include <fmt/format.h>

#include <algorithm>

#include "comm/nccl_impl.h"
#include "kernels/base/cuda_check.h"
#include "kernels/base/text.h"

namespace shardmat {
namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20;  ///< of memory that other devices can map

/// A window lies in the device's memory, as kernels read it. Where ranks cannot have one, NCCL 2.28 says success and gives
/// something of its own on the host.
bool is_window(const void* handle) {
  cudaPointerAttributes attributes{};
  SHARDMAT_CUDA_CHECK(cudaPointerGetAttributes(&attributes, handle));
  return attributes.type == cudaMemoryTypeDevice;
}

}  // namespace

NcclCommunicator::Memory::Memory(NcclCommunicator& owner, std::size_t bytes) : owner_(owner), bytes_(bytes) {
  Impl& impl = *owner.impl_;
  const DeviceGuard guard(impl.device);
  const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + kGranularity - 1) / kGranularity * kGranularity;
  try {
    impl.communicator.together([&] {
      require_memory(impl.device, static_cast<std::int64_t>(rounded), "memory shared between GPUs");
      const ncclResult_t result = ncclMemAlloc(&data_, rounded);
      if (result != ncclSuccess)
        throw Error(ErrorKind::resources,
                    fmt::format("cannot allocate {} on GPU {}: {}", human_bytes(static_cast<double>(rounded)),
                                impl.device.ordinal, nccl_error_text(result, impl.comm)));
    });
  } catch (const Error&) {
    if (data_ != nullptr) ncclMemFree(data_);
    throw;
  }
  // Between hosts a window would be one for the GPUs of each host, and other algorithms would use it to copy between those:
  // then ncclCommAbort() of NCCL 2.28 crashes if one of them is lost.
  if (!impl.reach_each_other()) {
    description_ = "plain device memory (not all GPUs reach each other directly)";
    return;
  }
  const auto window = std::make_shared<ncclWindow_t>(nullptr);
  const ncclResult_t result = impl.guarded(
      [window, rounded, comm = impl.comm, data = data_] {
        return ncclCommWindowRegister(comm, data, rounded, window.get(), NCCL_WIN_COLL_SYMMETRIC);
      },
      "registering memory (NCCL)");
  // A window is of use only if every rank has one.
  const bool registered = result == ncclSuccess && *window != nullptr;
  if (impl.communicator.all_reduce(registered && is_window(*window) ? 1 : 0, Reduction::min) == 1) {
    window_ = *window;
    description_ = "symmetric window";
    return;
  }
  if (registered)
    impl.guarded([comm = impl.comm, window] { return ncclCommWindowDeregister(comm, *window); }, "freeing memory (NCCL)");
  description_ = fmt::format("plain device memory ({})", result == ncclSuccess ? "no symmetric window on every rank"
                                                                               : nccl_error_text(result, impl.comm));
}

NcclCommunicator::Memory::~Memory() {
  Impl& impl = *owner_.impl_;
  // With a rank lost, freeing could wait for a kernel that waits for that rank: left to the end of the
  // process.
  if (impl.communicator.broken() || impl.comm == nullptr) return;
  try {
    const DeviceGuard guard(impl.device);
    if (window_ != nullptr)
      impl.guarded(
          [comm = impl.comm, window = static_cast<ncclWindow_t>(window_)] { return ncclCommWindowDeregister(comm, window); },
          "freeing memory (NCCL)");
    ncclMemFree(data_);
  } catch (const std::exception&) {  // a destructor must not throw; the communicator is broken and says so
  }
}

}  // namespace shardmat
