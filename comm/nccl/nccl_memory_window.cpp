// NcclCommunicator::Memory with symmetric windows that kernels reach (NCCL 2.28 and newer).
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "comm/nccl/nccl_impl.h"
#include "kernels/base/kept_arrays.h"
#include "kernels/base/text.h"

namespace shardmat {
namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20;  ///< of memory that other devices can map
/// Of a window that small memory shares, and the most of a piece of it.
constexpr std::size_t kSharedBytes = std::size_t{64} << 20, kMostOfPiece = std::size_t{8} << 20, kAlignment = 512;

/// A window lies in the device's memory, as kernels read it. Where ranks cannot have one, NCCL says success and gives
/// something of its own on the host.
bool is_window(ncclWindow_t handle) {
  cudaPointerAttributes attributes{};
  return handle != nullptr && cudaPointerGetAttributes(&attributes, handle) == cudaSuccess &&
         attributes.type == cudaMemoryTypeDevice;
}

}  // namespace

NcclCommunicator::Impl::Made NcclCommunicator::Impl::make_memory(std::size_t bytes) {
  Made made;
  const DeviceGuard guard(device);
  const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + kGranularity - 1) / kGranularity * kGranularity;
  try {
    communicator.run_agreed([&] {
      require_memory(device, static_cast<std::int64_t>(rounded), "memory shared between GPUs");
      ncclResult_t result = nccl().MemAlloc(&made.data, rounded);
      if (result != ncclSuccess) {  // NCCL takes none of the memory that is kept for the next buffers
        free_kept_arrays();
        result = nccl().MemAlloc(&made.data, rounded);
      }
      if (result != ncclSuccess)
        throw Error(ErrorKind::resources,
                    fmt::format("cannot allocate {} on GPU {}: {}", human_bytes(static_cast<double>(rounded)),
                                device.ordinal, nccl_error_text(result, comm)));
    });
  } catch (...) {  // not errors alone: work that pauses here may be left
    if (made.data != nullptr) nccl().MemFree(made.data);
    throw;
  }
  made.why_no_window = why_no_windows;
  if (!made.why_no_window.empty()) return made;
  const auto window = std::make_shared<ncclWindow_t>(nullptr);
  const ncclResult_t result = guarded(
      [window, rounded, comm = comm, data = made.data] {
        return nccl().CommWindowRegister(comm, data, rounded, window.get(), NCCL_WIN_COLL_SYMMETRIC);
      },
      "registering memory (NCCL)");
  // Between hosts a window would be one for the GPUs of each host, and other algorithms would use it to copy between those:
  // then ncclCommAbort() of NCCL 2.28 crashes if one of them is lost.
  const int reached = gpus_reached(), all = communicator.size();
  if (result != ncclSuccess) made.why_no_window = nccl_error_text(result, comm);
  else if (reached < all)
    made.why_no_window = fmt::format("of {} GPUs only {} can reach each other's memory directly", all, reached);
  else if (!is_window(*window))
    made.why_no_window = "NCCL has no symmetric windows here (NCCL_WIN_ENABLE, NCCL_CUMEM_ENABLE)";
  // A window is of use only if every rank has one.
  if (communicator.all_reduce(made.why_no_window.empty() ? 1 : 0, Reduction::min) == 1) {
    made.window = *window;
    return made;
  }
  if (made.why_no_window.empty()) made.why_no_window = "another rank has no symmetric window";
  if (result == ncclSuccess && *window != nullptr)
    guarded([comm = comm, window] { return nccl().CommWindowDeregister(comm, *window); }, "freeing memory (NCCL)");
  return made;
}

void NcclCommunicator::Impl::free_memory(const Made& made) {
  if (made.window != nullptr)
    guarded(
        [comm = comm, window = static_cast<ncclWindow_t>(made.window)] { return nccl().CommWindowDeregister(comm, window); },
        "freeing memory (NCCL)");
  nccl().MemFree(made.data);
}

NcclCommunicator::Impl::Block NcclCommunicator::Impl::take_piece(std::size_t bytes) {
  const std::size_t needed = (std::max<std::size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  for (std::size_t in = 0;; ++in) {
    if (in == shared.size()) shared.push_back({make_memory(kSharedBytes), {}});
    std::size_t end = 0;  // of the piece before
    for (const auto& [offset, taken] : shared[in].taken) {
      if (offset - end >= needed) break;
      end = offset + taken;
    }
    if (kSharedBytes - end < needed) continue;
    shared[in].taken[end] = needed;
    return {{}, in, end};
  }
}

void NcclCommunicator::Impl::free_shared() {
  if (shared.empty()) return;
  const DeviceGuard guard(device);
  guarded([] { return cudaDeviceSynchronize() == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError; },
          "waiting for the GPU");
  for (const Shared& one : shared) free_memory(one.made);
  shared.clear();
}

NcclCommunicator::Memory::Memory(NcclCommunicator& owner, std::size_t bytes) : owner_(owner), bytes_(bytes) {
  Impl& impl = *owner.impl_;
  owner.free_retired();
  const Impl::Block block = [&] {
    if (bytes > kMostOfPiece) return Impl::Block{impl.make_memory(bytes), {}};
    try {
      return impl.take_piece(bytes);
    } catch (const AgreedError& error) {  // there may be room for this piece alone
      if (error.kind() != ErrorKind::resources) throw;
      return Impl::Block{impl.make_memory(bytes), {}};
    }
  }();
  const Impl::Made& made = block.in ? impl.shared[*block.in].made : block.made;
  number_ = impl.next_block++;
  impl.blocks[number_] = block;
  offset_ = block.offset;
  data_ = static_cast<char*>(made.data) + offset_;
  window_ = made.window, why_no_window_ = made.why_no_window;
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
    if (block->second.in) impl.shared[*block->second.in].taken.erase(block->second.offset);
    else impl.free_memory(block->second.made);
    block = impl.blocks.erase(block);
  }
}

}  // namespace shardmat
