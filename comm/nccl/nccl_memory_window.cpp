// NcclCommunicator::Memory with symmetric windows that kernels reach (NCCL 2.28 and newer).
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "comm/nccl/nccl_impl.h"
#include "kernels/base/text.h"

namespace shardmat {
namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20;  ///< of memory that other devices can map

/// A window lies in the device's memory, as kernels read it. Where ranks cannot have one, NCCL says success and gives
/// something of its own on the host.
bool is_window(ncclWindow_t handle) {
  cudaPointerAttributes attributes{};
  return handle != nullptr && cudaPointerGetAttributes(&attributes, handle) == cudaSuccess &&
         attributes.type == cudaMemoryTypeDevice;
}

}  // namespace

NcclCommunicator::Memory::Memory(NcclCommunicator& owner, std::size_t bytes) : owner_(owner), bytes_(bytes) {
  Impl& impl = *owner.impl_;
  owner.free_retired();
  const DeviceGuard guard(impl.device);
  const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + kGranularity - 1) / kGranularity * kGranularity;
  try {
    impl.communicator.run_agreed([&] {
      require_memory(impl.device, static_cast<std::int64_t>(rounded), "memory shared between GPUs");
      const ncclResult_t result = nccl().MemAlloc(&data_, rounded);
      if (result != ncclSuccess)
        throw Error(ErrorKind::resources,
                    fmt::format("cannot allocate {} on GPU {}: {}", human_bytes(static_cast<double>(rounded)),
                                impl.device.ordinal, nccl_error_text(result, impl.comm)));
    });
  } catch (const Error&) {
    if (data_ != nullptr) nccl().MemFree(data_);
    throw;
  }
  number_ = impl.next_block++;
  impl.blocks[number_] = {data_, nullptr};
  why_no_window_ = impl.why_no_windows;
  if (!why_no_window_.empty()) return;
  const auto window = std::make_shared<ncclWindow_t>(nullptr);
  const ncclResult_t result = impl.guarded(
      [window, rounded, comm = impl.comm, data = data_] {
        return nccl().CommWindowRegister(comm, data, rounded, window.get(), NCCL_WIN_COLL_SYMMETRIC);
      },
      "registering memory (NCCL)");
  // Between hosts a window would be one for the GPUs of each host, and other algorithms would use it to copy between those:
  // then ncclCommAbort() of NCCL 2.28 crashes if one of them is lost.
  const int reached = impl.gpus_reached(), all = impl.communicator.size();
  if (result != ncclSuccess) why_no_window_ = nccl_error_text(result, impl.comm);
  else if (reached < all)
    why_no_window_ = fmt::format("of {} GPUs only {} can reach each other's memory directly", all, reached);
  else if (!is_window(*window)) why_no_window_ = "NCCL has no symmetric windows here (NCCL_WIN_ENABLE, NCCL_CUMEM_ENABLE)";
  // A window is of use only if every rank has one.
  if (impl.communicator.all_reduce(why_no_window_.empty() ? 1 : 0, Reduction::min) == 1) {
    window_ = impl.blocks[number_].window = *window;
    return;
  }
  if (why_no_window_.empty()) why_no_window_ = "another rank has no symmetric window";
  if (result == ncclSuccess && *window != nullptr)
    impl.guarded([comm = impl.comm, window] { return nccl().CommWindowDeregister(comm, *window); }, "freeing memory (NCCL)");
}

NcclCommunicator::Memory::~Memory() {
  if (const auto block = owner_.impl_->blocks.find(number_); block != owner_.impl_->blocks.end())
    block->second.retired = true;
}

void NcclCommunicator::free_retired() {
  Impl& impl = *impl_;
  // With a rank lost, freeing could wait for a kernel that waits for that rank: left to the end of the process.
  if (impl.communicator.broken() || impl.comm == nullptr || impl.blocks.empty()) return;
  std::vector<std::int64_t> retired;
  for (const auto& [number, block] : impl.blocks) retired.push_back(block.retired ? 1 : 0);
  const DeviceGuard guard(impl.device);
  // Work on such memory may still run.
  if (std::find(retired.begin(), retired.end(), 1) != retired.end())
    impl.guarded([] { return cudaDeviceSynchronize() == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError; },
                 "waiting for the GPU");
  impl.communicator.all_reduce(std::span<std::int64_t>(retired), Reduction::min);
  auto everywhere = retired.begin();
  for (auto block = impl.blocks.begin(); block != impl.blocks.end();) {
    if (*everywhere++ == 0) {
      ++block;
      continue;
    }
    if (block->second.window != nullptr)
      impl.guarded([comm = impl.comm, window = static_cast<ncclWindow_t>(
                                          block->second.window)] { return nccl().CommWindowDeregister(comm, window); },
                   "freeing memory (NCCL)");
    nccl().MemFree(block->second.data);
    block = impl.blocks.erase(block);
  }
}

}  // namespace shardmat
