// The only place that launches kernels: 64-bit grid arithmetic, empty grids are skipped, every launch is checked.
//
// Threads: any thread may launch, one at a time on a stream. Each call sets the stream's device for the calling thread and
// restores the thread's own; this takes some ten nanoseconds if they are the same. Graphs pay it when they are recorded.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "kernels/base/cuda_check.h"
#include "kernels/base/device.h"
#include "kernels/policy.h"

namespace shardmat::cuda {

/// The policy's block_size. Throws Error(usage) for an invalid block size.
inline int block_size_of(const Policy& policy, const std::string& kernel) {
  const int block_size = policy.at("block_size");
  if (block_size < 32 || block_size > 1024 || block_size % 32 != 0)
    throw Error(ErrorKind::usage, kernel + ": block_size must be a multiple of 32 from 32 to 1024");
  return block_size;
}

/// True if the code of `kernel` that runs on this device was compiled for capability 9.0 or later. (A new device also runs
/// code for older devices, which lacks the new features.) All kernels are compiled for the same devices.
template <class... Parameters>
bool compiled_for_9_0(void (*kernel)(Parameters...), Device device) {
  constexpr int kDevices = 64;
  static std::array<std::atomic<signed char>, kDevices> known{};  // 0: not yet, 1: no, 2: yes
  const auto place = static_cast<std::size_t>(device.ordinal % kDevices);
  if (known[place] == 0 || device.ordinal >= kDevices) {
    const DeviceGuard guard(device);
    cudaFuncAttributes attributes{};
    SHARDMAT_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
    known[place] = attributes.ptxVersion >= 90 ? 2 : 1;
  }
  return known[place] == 2;
}

/// Throws Error(resources) if a grid cannot have `blocks` × `across` blocks.
inline void require_grid(std::int64_t blocks, std::int64_t across) {
  constexpr std::int64_t kMostAcross = 65535;
  if (blocks > std::numeric_limits<std::int32_t>::max() || across > kMostAcross)
    throw Error(ErrorKind::resources, "a kernel would need " + std::to_string(blocks) + " × " + std::to_string(across) +
                                          " thread blocks, more than a grid holds; use more GPUs");
}

/// Runs `kernel` on a grid of `blocks` × `across` blocks (x varies fastest), each with `shared_bytes` of dynamic shared
/// memory. Launches nothing for 0 blocks. Call allow_shared_memory() before, for more than 48 KB of shared memory.
template <class... Parameters, class... Arguments>
void launch_grid(void (*kernel)(Parameters...), std::int64_t blocks, std::int64_t across, dim3 block_size,
                 std::size_t shared_bytes, const Stream& stream, Arguments&&... arguments) {
  if (blocks == 0 || across == 0) return;
  require_grid(blocks, across);
  const DeviceGuard guard(stream.device());
  kernel<<<dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(across)), block_size, shared_bytes, stream.native()>>>(
      std::forward<Arguments>(arguments)...);
  stream.let_next_begin(false);
  SHARDMAT_CUDA_CHECK(cudaGetLastError());
}

/// As launch_grid(), but from capability 9.0 on, blocks start while the previous kernel in the stream still runs
/// (programmatic dependent launch). So kernels of a few microseconds follow each other without a gap. REQUIRES: `kernel`
/// calls after_previous() or wait_for_previous() before it touches memory, or obeys the rules of launch_grid_beside(). If
/// the next kernel may overlap it (Stream::let_next_begin()), all threads call wait_for_previous() before let_next_begin().
template <class... Parameters, class... Arguments>
void launch_grid_early(void (*kernel)(Parameters...), std::int64_t blocks, std::int64_t across, dim3 block_size,
                       std::size_t shared_bytes, const Stream& stream, Arguments&&... arguments) {
  if (!compiled_for_9_0(kernel, stream.device()))
    return launch_grid(kernel, blocks, across, block_size, shared_bytes, stream, std::forward<Arguments>(arguments)...);
  if (blocks == 0 || across == 0) return;
  require_grid(blocks, across);
  const DeviceGuard guard(stream.device());
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(across));
  config.blockDim = block_size;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream.native();
  config.attrs = &early;
  config.numAttrs = 1;
  stream.let_next_begin(false);
  SHARDMAT_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...));
}

/// As launch_grid(), but with `beside`, the kernel may overlap the previous kernel in the stream, if that kernel allows it
/// (Stream::next_may_begin()): blocks start once all blocks of the previous kernel have started. REQUIRES: at least one
/// thread calls wait_for_previous() before `kernel` reads anything that the previous kernel writes; `kernel` writes nothing
/// that the previous kernel reads.
template <class... Parameters, class... Arguments>
void launch_grid_beside(bool beside, void (*kernel)(Parameters...), std::int64_t blocks, std::int64_t across,
                        dim3 block_size, std::size_t shared_bytes, const Stream& stream, Arguments&&... arguments) {
  if (beside && stream.next_may_begin())
    launch_grid_early(kernel, blocks, across, block_size, shared_bytes, stream, std::forward<Arguments>(arguments)...);
  else launch_grid(kernel, blocks, across, block_size, shared_bytes, stream, std::forward<Arguments>(arguments)...);
}

#ifdef __CUDACC__
/// Lets the next kernel start once all blocks have called this. The host must call Stream::let_next_begin(), too.
__device__ inline void let_next_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
/// Waits until all earlier kernels are done and their writes are visible.
__device__ inline void wait_for_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/// The same; the compiler reads nothing through `p` before it.
template <class T>
__device__ inline void wait_for_previous(const T*& p) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" : "+l"(p)::"memory");
#endif
}
/// Lets the next kernel start (which waits in the same way), then waits for all earlier kernels.
__device__ inline void after_previous() {
  let_next_begin();
  wait_for_previous();
}
#endif

/// As launch_grid() with a grid of `blocks` blocks.
template <class... Parameters, class... Arguments>
void launch_blocks(void (*kernel)(Parameters...), std::int64_t blocks, int block_size, std::size_t shared_bytes,
                   const Stream& stream, Arguments&&... arguments) {
  launch_grid(kernel, blocks, 1, dim3(static_cast<unsigned>(block_size)), shared_bytes, stream,
              std::forward<Arguments>(arguments)...);
}

/// Runs `kernel` with at least `threads` threads in blocks of `block_size`. Launches nothing for 0 threads.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), std::int64_t threads, int block_size, const Stream& stream,
            Arguments&&... arguments) {
  launch_blocks(kernel, (threads + block_size - 1) / block_size, block_size, 0, stream,
                std::forward<Arguments>(arguments)...);
}

inline int multiprocessors(Device device) {
  int count = 0;
  SHARDMAT_CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device.ordinal));
  return count;
}

/// The most shared memory that a block can have after allow_shared_memory().
inline std::size_t most_shared_memory(Device device) {
  int most = 0;
  SHARDMAT_CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device.ordinal));
  return static_cast<std::size_t>(most);
}

/// Lets `kernel` have this many bytes of dynamic shared memory a block on the device; never fewer than were allowed before,
/// because other plans may count on them.
template <class... Parameters>
void allow_shared_memory(void (*kernel)(Parameters...), std::size_t bytes, Device device) {
  const DeviceGuard guard(device);
  cudaFuncAttributes attributes{};
  SHARDMAT_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
  if (static_cast<std::size_t>(attributes.maxDynamicSharedSizeBytes) >= bytes) return;
  SHARDMAT_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
}

}  // namespace shardmat::cuda
