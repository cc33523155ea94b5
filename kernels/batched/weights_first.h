// The parts that the two kernels with X·W first share (features_weights_first.cu, features_tiles.cu).
#pragma once

#include <cuda_pipeline.h>

#include "kernels/batched/features_tensor.h"

namespace shardmat::batched {

constexpr int kAhead = 4;  ///< steps whose columns of X are asked for early

/// A batch of matrices as these kernels see it.
struct FeatureRows {
  const std::int32_t *row_ptr, *col_idx;
  const float* values;
  RowShifts shifts;
};

/// Copies one value to shared memory without waiting for it.
template <class V>
__device__ void copy(V* shared, const V* global) {
  __pipeline_memcpy_async(shared, global, sizeof(V));
}

/// Adds 16 rows of X times W to `sum`. `x`: their first kAhead steps, which have been asked for; `w`: the lane's part of W.
/// ask(slot of x, of_next, step) asks for a step of these rows or, with `of_next`, of the rows that come next.
template <int N, class Ask>
__device__ void multiply_strip(float4 (&x)[kAhead][kOwn], int steps, const Split* w, float (&sum)[N][4], const Ask& ask) {
  const auto take = [&](int base, bool whole) {
    const bool of_next = base + kAhead >= steps;
#pragma unroll
    for (int e = 0; e < kAhead; ++e) {
      if (whole || base + e < steps) multiply_add(x[e], w + (base + e) * 2 * N * kWarp, sum);
      ask(x[e], of_next, of_next ? e : base + kAhead + e);
    }
  };
  if (steps % kAhead == 0) {
#pragma unroll 1
    for (int base = 0; base < steps; base += kAhead) take(base, true);
  } else {
#pragma unroll 1
    for (int base = 0; base < steps; base += kAhead) take(base, false);
  }
}

/// Writes the sums of a lane's row `h` of kOwn. `to`: the lane's first column of that row.
template <int N>
__device__ void store_strip_row(float* to, const float (&sum)[N][4], int h) {
#pragma unroll
  for (int n = 0; n < N; n += 2)
    *reinterpret_cast<float4*>(to + n * kTile) = {sum[n][2 * h], sum[n][2 * h + 1], sum[n + 1][2 * h],
                                                  sum[n + 1][2 * h + 1]};
}

}  // namespace shardmat::batched
