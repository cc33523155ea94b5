// Sums of the columns of a row-major matrix within a thread block.
#pragma once

namespace shardmat::cuda {

#ifdef __CUDACC__
/// Adds the sums of `lanes` lanes for each of `width` columns, in a fixed tree; valid in lane 0. sums[lane·width + column].
__device__ inline void add_lanes(double* sums, int lanes, int width, int lane, int column) {
  for (int left = lanes; left > 1;) {
    const int half = (left + 1) / 2;
    __syncthreads();
    if (lane + half < left) sums[lane * width + column] += sums[(lane + half) * width + column];
    left = half;
  }
  __syncthreads();
}
#endif

}  // namespace shardmat::cuda
