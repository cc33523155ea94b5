// What is done with the sums of a row of blocks: y, or a step of a smoother. Internal to the products of blocks.
#pragma once

#include <cstdint>

#include "kernels/blocks/block_product.h"

namespace shardmat::blocks {

template <class T>
struct Plain {
  T alpha, beta;
  T* y;
};
/// SmootherStep in the type of the product.
template <class T>
struct Step {
  const T* inverse;
  T *r, *x, *e;
  T a, b;
  bool x_lacks_d;
};

template <class T>
Plain<T> plain_end(double alpha, double beta, void* y) {
  return {static_cast<T>(alpha), static_cast<T>(beta), static_cast<T*>(y)};
}
template <class T>
Step<T> step_end(const SmootherStep& step) {
  return {static_cast<const T*>(step.inverse),
          static_cast<T*>(step.r),
          static_cast<T*>(step.x),
          static_cast<T*>(step.e),
          static_cast<T>(step.a),
          static_cast<T>(step.b),
          step.x_lacks_d};
}

#ifdef __CUDACC__
template <class T>
__device__ void end_entry(const Plain<T>& to, std::int64_t row, T sum) {
  to.y[row] = to.beta == T(0) ? to.alpha * sum : to.alpha * sum + to.beta * to.y[row];
}
/// `left`: what is left of r; `step`: M·r of this row; `before`: d.
template <class T>
__device__ void end_entry(const Step<T>& to, std::int64_t row, T left, T step, T before) {
  const T e = to.a * step + to.b * before;
  to.r[row] = left;
  to.e[row] = e;
  to.x[row] += to.x_lacks_d ? before + e : e;
}

/// By all lanes of a warp: lane l of a team has the sum of row l of the blocks, if l < R. `width`: lanes of the team in the
/// warp; x: the product's input; count: rows of blocks.
template <int R, class T>
__device__ void end_row(const Plain<T>& to, const T*, std::int64_t count, std::int64_t i, int lane, int, T sum) {
  if (lane < R && i < count) end_entry(to, i * R + lane, sum);
}
template <int R, class T>
__device__ void end_row(const Step<T>& to, const T* d, std::int64_t count, std::int64_t i, int lane, int width, T sum) {
  const bool real = lane < R && i < count;
  const std::int64_t row = real ? i * R + lane : 0;
  const T left = to.r[row] - sum;
  T step = 0;
#pragma unroll
  for (int c = 0; c < R; ++c) step += __ldg(to.inverse + row * R + c) * __shfl_sync(0xffffffffu, left, c, width);
  if (real) end_entry(to, row, left, step, d[row]);
}

/// All rows of row i of blocks, by one lane.
template <int R, class T>
__device__ void end_rows(const Plain<T>& to, const T*, std::int64_t i, const T (&sum)[R]) {
#pragma unroll
  for (int r = 0; r < R; ++r) end_entry(to, i * R + r, sum[r]);
}
template <int R, class T>
__device__ void end_rows(const Step<T>& to, const T* d, std::int64_t i, const T (&sum)[R]) {
  T left[R];
#pragma unroll
  for (int r = 0; r < R; ++r) left[r] = to.r[i * R + r] - sum[r];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    T step = 0;
#pragma unroll
    for (int c = 0; c < R; ++c) step += __ldg(to.inverse + (i * R + r) * R + c) * left[c];
    end_entry(to, i * R + r, left[r], step, d[i * R + r]);
  }
}
#endif

}  // namespace shardmat::blocks
