#include "kernels/cuda/split_rows.h"

#include <algorithm>

#include "kernels/cuda/launch.h"

namespace shardmat::cuda {
namespace {

constexpr int kBlock = 256;
constexpr int kWarps = kBlock / 32;
constexpr int kShort = 32;  // tiles that one thread adds alone; more are added by its whole block

template <class T>
__device__ void write(T sum, std::int64_t row, T alpha, T beta, T* y) {
  y[row] = beta == T(0) ? alpha * sum : alpha * sum + beta * y[row];
}

/// The sum of every thread's value, in thread 0.
template <class T>
__device__ T block_sum(T value, T* of_warp) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0;
  if (threadIdx.x == 0)
    for (int w = 0; w < kWarps; ++w) value += of_warp[w];
  __syncthreads();
  return value;
}

template <class T>
__global__ void finish_rows_kernel(std::int64_t tiles, const SplitRow* __restrict__ rows, const T* __restrict__ head,
                                   const T* __restrict__ tail, const std::int32_t* __restrict__ empty,
                                   std::int64_t empty_count, T alpha, T beta, T* __restrict__ y) {
  __shared__ std::int64_t long_tiles[kBlock / kShort];  // a long row spans more than kShort tiles, so that few end here
  __shared__ int long_count;
  __shared__ T of_warp[kWarps];
  if (threadIdx.x == 0) long_count = 0;
  __syncthreads();
  const std::int64_t tile = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (tile < empty_count) write(T(0), empty[tile], T(0), beta, y);
  if (tile < tiles && rows[tile].row >= 0) {
    const SplitRow split = rows[tile];
    if (tile - split.first <= kShort) {
      T sum = 0;
      for (std::int64_t t = split.first; t < tile; ++t) sum += tail[t];
      write(sum + head[tile], split.row, alpha, beta, y);
    } else {
      long_tiles[atomicAdd(&long_count, 1)] = tile;
    }
  }
  __syncthreads();
  for (int i = 0; i < long_count; ++i) {
    const std::int64_t last = long_tiles[i];
    const SplitRow split = rows[last];
    T sum = 0;
    for (std::int64_t t = split.first + threadIdx.x; t < last; t += kBlock) sum += tail[t];
    sum = block_sum(sum, of_warp);
    if (threadIdx.x == 0) write(sum + head[last], split.row, alpha, beta, y);
  }
}

}  // namespace

template <class T>
void finish_rows(const SplitRows& split, const std::int32_t* empty, std::int64_t empty_count, T alpha, T beta, T* y,
                 const Stream& stream) {
  launch(finish_rows_kernel<T>, std::max(split.tiles, empty_count), kBlock, stream, split.tiles, split.rows.as<SplitRow>(),
         split.head.as<T>(), split.tail.as<T>(), empty, empty_count, alpha, beta, y);
}

template void finish_rows(const SplitRows&, const std::int32_t*, std::int64_t, float, float, float*, const Stream&);
template void finish_rows(const SplitRows&, const std::int32_t*, std::int64_t, double, double, double*, const Stream&);

}  // namespace shardmat::cuda
