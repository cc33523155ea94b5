// Sums of own·y that a kernel of a product forms from the rows that it writes. A thread adds its rows, a block its threads
// in a fixed order, and each block leaves one part. The kernel behind adds the parts: blocks that waited for each other
// would cost more than it does.
#pragma once

#include <cstdint>

#include "kernels/typed_plan.h"

namespace shardmat::cuda {

/// A thread's sum. Kernels call add() for each entry of y that they write, then all threads of the block call
/// leave_dot_part(); without a dot product both do nothing.
template <class Dot>
struct DotSum;

template <>
struct DotSum<NoDot> {
  static constexpr bool kSums = false;
  __device__ explicit DotSum(NoDot) {}
  template <class T>
  __device__ void add(std::int64_t, T) {}
};

template <class T>
struct DotSum<DotInto<T>> {
  static constexpr bool kSums = true;
  const T* own;
  double* parts;
  double sum = 0;
  __device__ explicit DotSum(const DotInto<T>& dot) : own(dot.own), parts(dot.parts) {}
  __device__ void add(std::int64_t row, T y) { sum += static_cast<double>(__ldg(own + row)) * static_cast<double>(y); }
};

/// Writes the block's part to parts[part].
template <class Dot>
__device__ void leave_dot_part([[maybe_unused]] const DotSum<Dot>& dot, [[maybe_unused]] std::int64_t part) {
  if constexpr (DotSum<Dot>::kSums) {
    __shared__ double of_warp[32];
    double sum = dot.sum;
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x != 0) return;
    sum = 0;
    for (unsigned w = 0; w < blockDim.x / 32; ++w) sum += of_warp[w];
    dot.parts[part] = sum;
  }
}

}  // namespace shardmat::cuda
