#include "kernels/cuda/split_rows.h"

#include <algorithm>

#include "kernels/cuda/dot_sums.h"
#include "kernels/cuda/launch.h"

namespace shardmat::cuda {
namespace {

constexpr int kBlock = 256;
constexpr int kWarps = kBlock / 32;
constexpr int kShort = 32;  // tiles that one thread adds alone; more are added by its whole block

template <class T, class Dot>
__device__ void write(T sum, std::int64_t row, T alpha, T beta, T* y, DotSum<Dot>& dot) {
  const T of_row = beta == T(0) ? alpha * sum : alpha * sum + beta * y[row];
  y[row] = of_row;
  dot.add(row, of_row);
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

template <class T, class Dot>
__global__ void finish_rows_kernel(std::int64_t tiles, const SplitRow* __restrict__ rows, const T* __restrict__ head,
                                   const T* __restrict__ tail, const std::int32_t* __restrict__ empty,
                                   std::int64_t empty_count, T alpha, T beta, T* __restrict__ y, Dot dot) {
  DotSum<Dot> dot_sum(dot);
  __shared__ std::int64_t long_tiles[kBlock / kShort];  // a long row spans more than kShort tiles, so that few end here
  __shared__ int long_count;
  __shared__ T of_warp[kWarps];
  if (threadIdx.x == 0) long_count = 0;
  __syncthreads();
  const std::int64_t tile = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (tile < empty_count) write(T(0), empty[tile], T(0), beta, y, dot_sum);
  if (tile < tiles && rows[tile].row >= 0) {
    const SplitRow split = rows[tile];
    if (tile - split.first <= kShort) {
      T sum = 0;
      for (std::int64_t t = split.first; t < tile; ++t) sum += tail[t];
      write(sum + head[tile], split.row, alpha, beta, y, dot_sum);
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
    if (threadIdx.x == 0) write(sum + head[last], split.row, alpha, beta, y, dot_sum);
  }
  leave_dot_part(dot_sum, blockIdx.x);
}

}  // namespace

std::int64_t finish_parts(const SplitRows& split, std::int64_t empty_count) {
  return (std::max(split.tiles, empty_count) + kBlock - 1) / kBlock;
}

template <class T, class Dot>
void finish_rows(const SplitRows& split, const std::int32_t* empty, std::int64_t empty_count, T alpha, T beta, T* y,
                 const Stream& stream, Dot dot) {
  launch(finish_rows_kernel<T, Dot>, std::max(split.tiles, empty_count), kBlock, stream, split.tiles, split.rows.as<SplitRow>(),
         split.head.as<T>(), split.tail.as<T>(), empty, empty_count, alpha, beta, y, dot);
}

#define SHARDMAT_MAKE(T, Dot) \
  template void finish_rows(const SplitRows&, const std::int32_t*, std::int64_t, T, T, T*, const Stream&, Dot);
SHARDMAT_MAKE(float, NoDot)
SHARDMAT_MAKE(double, NoDot)
SHARDMAT_MAKE(float, DotInto<float>)
SHARDMAT_MAKE(double, DotInto<double>)

}  // namespace shardmat::cuda
