// The one place that launches kernels: 64-bit grid arithmetic, empty grids skipped, every launch checked.
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

inline cudaStream_t native(const Stream& stream) { return static_cast<cudaStream_t>(stream.native()); }

/// The policy's block_size. Throws Error(usage) if it is not one.
inline int block_size_of(const Policy& policy, const std::string& kernel) {
  const int block_size = policy.at("block_size");
  if (block_size < 32 || block_size > 1024 || block_size % 32 != 0)
    throw Error(ErrorKind::usage, kernel + ": block_size must be a multiple of 32 from 32 to 1024");
  return block_size;
}

/// True if the code of `kernel` that runs on the device was compiled for capability 9.0 or later: on such a device, code for
/// an older one runs, too, and knows nothing of what came with it. All kernels are compiled alike.
template <class... Parameters>
bool compiled_for_9_0(void (*kernel)(Parameters...), Device device) {
  constexpr int kDevices = 64;
  static std::array<std::atomic<signed char>, kDevices> known{};  // 0: not yet, 1: no, 2: yes
  const auto place = static_cast<std::size_t>(device.ordinal % kDevices);
  if (known[place] == 0 || device.ordinal >= kDevices) {
    cudaFuncAttributes attributes{};
    SHARDMAT_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
    known[place] = attributes.ptxVersion >= 90 ? 2 : 1;
  }
  return known[place] == 2;
}

/// Throws Error(resources) if a grid does not hold so many blocks.
inline void require_grid(std::int64_t blocks, std::int64_t across) {
  constexpr std::int64_t kMostAcross = 65535;
  if (blocks > std::numeric_limits<std::int32_t>::max() || across > kMostAcross)
    throw Error(ErrorKind::resources, "a kernel would need " + std::to_string(blocks) + " × " + std::to_string(across) +
                                          " thread blocks, more than a grid holds; use more GPUs");
}

/// Runs `kernel` on a grid of `blocks` × `across` blocks (x goes first), each with `shared_bytes` of dynamic shared memory.
/// Nothing is launched for 0 blocks. More than 48 KB of shared memory has to be allowed before, with allow_shared_memory().
template <class... Parameters, class... Arguments>
void launch_grid(void (*kernel)(Parameters...), std::int64_t blocks, std::int64_t across, dim3 block_size,
                 std::size_t shared_bytes, const Stream& stream, Arguments&&... arguments) {
  if (blocks == 0 || across == 0) return;
  require_grid(blocks, across);
  kernel<<<dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(across)), block_size, shared_bytes, native(stream)>>>(
      std::forward<Arguments>(arguments)...);
  stream.let_next_begin(false);
  SHARDMAT_CUDA_CHECK(cudaGetLastError());
}

/// As launch_grid(), but from capability 9.0 on blocks start while the kernel before in the stream still works: kernels of a
/// few microseconds then follow each other without a gap. REQUIRES: `kernel` calls after_previous() or
/// wait_for_previous() before it touches memory, or does what launch_grid_beside() asks for. If the kernel behind it may
/// begin beside it (Stream::let_next_begin()), all threads call wait_for_previous() before let_next_begin().
template <class... Parameters, class... Arguments>
void launch_grid_early(void (*kernel)(Parameters...), std::int64_t blocks, std::int64_t across, dim3 block_size,
                       std::size_t shared_bytes, const Stream& stream, Arguments&&... arguments) {
  if (!compiled_for_9_0(kernel, stream.device()))
    return launch_grid(kernel, blocks, across, block_size, shared_bytes, stream, std::forward<Arguments>(arguments)...);
  if (blocks == 0 || across == 0) return;
  require_grid(blocks, across);
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(across));
  config.blockDim = block_size;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = native(stream);
  config.attrs = &early;
  config.numAttrs = 1;
  stream.let_next_begin(false);
  SHARDMAT_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...));
}

/// As launch_grid(), but with `beside`, blocks start beside the kernel before in the stream if that lets them
/// (Stream::next_may_begin()), once all of its own have started. REQUIRES: `kernel` then calls wait_for_previous(), in one
/// thread at least, before it reads what the other writes, and it writes nothing that the other reads.
template <class... Parameters, class... Arguments>
void launch_grid_beside(bool beside, void (*kernel)(Parameters...), std::int64_t blocks, std::int64_t across,
                        dim3 block_size, std::size_t shared_bytes, const Stream& stream, Arguments&&... arguments) {
  if (beside && stream.next_may_begin())
    launch_grid_early(kernel, blocks, across, block_size, shared_bytes, stream, std::forward<Arguments>(arguments)...);
  else
    launch_grid(kernel, blocks, across, block_size, shared_bytes, stream, std::forward<Arguments>(arguments)...);
}

#ifdef __CUDACC__
/// Lets the kernel behind start once all blocks have come here. The host says so, too: Stream::let_next_begin().
__device__ inline void let_next_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
/// Waits until what came before is done and can be seen.
__device__ inline void wait_for_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/// As wait_for_previous(); nothing is read through `p` earlier.
template <class T>
__device__ inline void wait_for_previous(const T*& p) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" : "+l"(p)::"memory");
#endif
}
/// Lets the kernel behind start, which waits here, too, and waits until what came before is done and can be seen.
__device__ inline void after_previous() {
  let_next_begin();
  wait_for_previous();
}
#endif

/// As launch_grid() on `blocks` blocks.
template <class... Parameters, class... Arguments>
void launch_blocks(void (*kernel)(Parameters...), std::int64_t blocks, int block_size, std::size_t shared_bytes,
                   const Stream& stream, Arguments&&... arguments) {
  launch_grid(kernel, blocks, 1, dim3(static_cast<unsigned>(block_size)), shared_bytes, stream,
              std::forward<Arguments>(arguments)...);
}

/// Runs `kernel` with at least `threads` threads in blocks of `block_size`. Nothing is launched for 0 threads.
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

/// Bytes that a block can have at most, once allowed.
inline std::size_t most_shared_memory(Device device) {
  int most = 0;
  SHARDMAT_CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device.ordinal));
  return static_cast<std::size_t>(most);
}

/// Lets `kernel` have this many bytes of dynamic shared memory a block; never fewer than were allowed before, because other
/// plans may count on them.
template <class... Parameters>
void allow_shared_memory(void (*kernel)(Parameters...), std::size_t bytes) {
  cudaFuncAttributes attributes{};
  SHARDMAT_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
  if (static_cast<std::size_t>(attributes.maxDynamicSharedSizeBytes) >= bytes) return;
  SHARDMAT_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
}

}  // namespace shardmat::cuda
