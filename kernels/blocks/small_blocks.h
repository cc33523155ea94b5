// What passes over blocks share on a GPU: places of columns, and sums in a fixed order.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/base/known_size.h"
#include "kernels/blocks/block_rows.h"
#include "kernels/blocks/scans.h"
#include "kernels/cuda/launch.h"

namespace shardmat::blocks {

constexpr int kThreads = 256, kLanes = 32;  ///< of a thread block, of a warp

/// Calls f(std::integral_constant<int, size>) for 1 … kMostUnknowns.
template <class F>
void with_unknowns(int size, const F& f) {
  with_known_size<kMostUnknowns>(size, f);
}

/// Calls f(std::integral_constant<int, kTeam>) with the lanes that have a row together: few where rows are short.
template <class F>
void with_team(std::int64_t blocks, std::int64_t rows, const F& f) {
  if (blocks < 12 * rows) f(std::integral_constant<int, 8>());
  else f(std::integral_constant<int, kLanes>());
}

/// The lanes of this thread's team of kTeam in its warp.
template <int kTeam>
__device__ unsigned team_mask() {
  if constexpr (kTeam == kLanes) return 0xffffffffu;
  else return ((1u << kTeam) - 1) << (threadIdx.x % kLanes / kTeam * kTeam);
}

/// The first of `count` ascending numbers that is not below `wanted`.
__device__ inline std::int64_t place_of(const std::int32_t* numbers, std::int64_t count, std::int32_t wanted) {
  std::int64_t low = 0, high = count;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (numbers[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

/// Sums of N values of each thread over the thread block, in a fixed order; thread 0 writes them to `to`.
template <int N, int kThreadsOfBlock>
__device__ void add_over_block(const double (&mine)[N], double* to) {
  __shared__ double of_warp[kThreadsOfBlock / 32];
  for (int n = 0; n < N; ++n) {
    double sum = mine[n];
    for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, other);
    __syncthreads();
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
      sum = 0;
      for (int w = 0; w < kThreadsOfBlock / 32; ++w) sum += of_warp[w];
      to[n] = sum;
    }
  }
}

/// The sums over `count` parts of `each` values, in host memory. Waits for the stream.
inline void sum_parts(const Buffer& parts, std::int64_t count, std::int64_t each, double* sums, Stream& stream) {
  std::vector<double> all(static_cast<std::size_t>(count * each));
  copy_to_host(all.data(), parts.data(), all.size() * sizeof(double), stream);
  for (std::int64_t n = 0; n < each; ++n) {
    sums[n] = 0;
    for (std::int64_t part = 0; part < count; ++part) sums[n] += all[static_cast<std::size_t>(part * each + n)];
  }
}

}  // namespace shardmat::blocks
