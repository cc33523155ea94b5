// X and Y of a batched product as its kernels see them, and how a lane takes several columns of a row at once: as many as
// 16 bytes hold where all rows begin at a multiple of that, else two or one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/batched/batched_spmm.h"

#ifdef __CUDACC__
#include "kernels/cuda/dense_rows.h"
#endif

namespace shardmat::batched {

/// `A`: type of the matrices and of X, `T`: of sums and of Y.
template <class T, class A>
struct Operands {
  const A* x;
  std::int64_t ldx;
  T* y;
  std::int64_t ldy;
  int columns;
  T alpha, beta;
  const T* bias;
  bool relu;
};

template <class T, class A>
Operands<T, A> operands(const BatchedPlan& plan, const void* x, std::int64_t ldx, void* y, std::int64_t ldy,
                        const Epilogue& e) {
  return {static_cast<const A*>(x),
          ldx,
          static_cast<T*>(y),
          ldy,
          static_cast<int>(plan.columns()),
          static_cast<T>(e.alpha),
          static_cast<T>(e.beta),
          static_cast<const T*>(e.bias),
          e.relu};
}

/// subWarp of Nagasaka et al., section 4.1: lanes over so many columns.
inline int sub_warp_of(std::int64_t columns) {
  int lanes = 1;
  while (lanes < 32 && lanes < columns) lanes *= 2;
  return lanes;
}

/// Lanes of a sub-warp for so many stretches of columns, one a lane and pass: a power of two up to 32, of which few have
/// nothing to do in the last pass.
inline int lanes_for(std::int64_t stretches) {
  int lanes = sub_warp_of(stretches);
  const auto idle = [&](int of) { return (stretches + of - 1) / of * of - stretches; };
  while (stretches > 32 && lanes > 4 && 4 * idle(lanes) > stretches) lanes /= 2;
  return lanes;
}
inline int log2_of(int power) {
  int log = 0;
  while ((1 << log) < power) ++log;
  return log;
}

template <int W>
struct Width {
  static constexpr int value = W;
};

/// Calls f(Width<W>{}) with the most columns that lanes may take at once.
template <class T, class A, class F>
void with_width(const Operands<T, A>& v, const F& f) {
  constexpr int kWide = 16 / static_cast<int>(sizeof(A));
  const auto fits = [&](int width) {
    const auto multiple = [&](const void* p, std::size_t size) {
      // Y and the bias take more than one store where their type is wider than X's.
      return reinterpret_cast<std::uintptr_t>(p) % std::min<std::size_t>(16, static_cast<std::size_t>(width) * size) == 0;
    };
    return v.columns % width == 0 && v.ldx % width == 0 && v.ldy % width == 0 && multiple(v.x, sizeof(A)) &&
           multiple(v.y, sizeof(T)) && (v.bias == nullptr || multiple(v.bias, sizeof(T)));
  };
  if (fits(kWide)) return f(Width<kWide>{});
  if constexpr (kWide > 2)
    if (fits(2)) return f(Width<2>{});
  f(Width<1>{});
}

#ifdef __CUDACC__

template <class E, int W>
struct alignas(sizeof(E) * W) Stretch {
  E of[W];
};

/// W entries through the cache for what does not change while the kernel runs.
template <int W, class E>
__device__ Stretch<E, W> load(const E* p) {
  Stretch<E, W> v;
  if constexpr (sizeof(v) == 16) *reinterpret_cast<int4*>(&v) = __ldg(reinterpret_cast<const int4*>(p));
  else if constexpr (sizeof(v) == 8) *reinterpret_cast<int2*>(&v) = __ldg(reinterpret_cast<const int2*>(p));
  else if constexpr (sizeof(v) == 4) *reinterpret_cast<int*>(&v) = __ldg(reinterpret_cast<const int*>(p));
  else *reinterpret_cast<short*>(&v) = __ldg(reinterpret_cast<const short*>(p));
  return v;
}

template <class T, class A, int W>
__device__ void add_product(T (&sum)[W], A value, const Stretch<A, W>& x) {
#pragma unroll
  for (int w = 0; w < W; ++w) sum[w] += dense::widened(value) * dense::widened(x.of[w]);
}

/// One value on its way into column `column` of Y, where `old` stands.
template <class T, class A>
__device__ T finished(const Operands<T, A>& v, T sum, T old, int column) {
  T out = v.alpha * sum;
  if (v.beta != T(0)) out += v.beta * old;
  if (v.bias != nullptr) out += __ldg(v.bias + column);
  return v.relu && out < T(0) ? T(0) : out;
}

/// What comes beside the sum, for kernels that add the products to it one by one.
template <class T, class A>
__device__ T set_aside(const Operands<T, A>& v, T old, int column) {
  T out = v.beta != T(0) ? v.beta * old : T(0);
  if (v.bias != nullptr) out += __ldg(v.bias + column);
  return out;
}

/// Puts the sums of W columns from `column` into row `row` of Y.
template <class T, class A, int W>
__device__ void store(const Operands<T, A>& v, std::int64_t row, int column, const T (&sum)[W]) {
  constexpr int kAtOnce = W * static_cast<int>(sizeof(T)) <= 16 ? W : 16 / static_cast<int>(sizeof(T));
  T* y = v.y + row * v.ldy + column;
#pragma unroll
  for (int first = 0; first < W; first += kAtOnce) {
    Stretch<T, kAtOnce>& at = *reinterpret_cast<Stretch<T, kAtOnce>*>(y + first);
    Stretch<T, kAtOnce> out{};
    if (v.beta != T(0)) out = at;
#pragma unroll
    for (int w = 0; w < kAtOnce; ++w) out.of[w] = finished(v, sum[first + w], out.of[w], column + first + w);
    at = out;
  }
}

/// For kernels that add to Y: `before` sets it to what comes beside the sums, `after` applies the rectifier.
enum class Pass { before, after };

template <class T, Pass kPass>
__global__ void finish_rows(std::int64_t entries, Operands<T, T> v) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= entries) return;
  const int column = static_cast<int>(i % v.columns);
  T& y = v.y[i / v.columns * v.ldy + column];
  if constexpr (kPass == Pass::after) {
    if (y < T(0)) y = T(0);
  } else {
    y = set_aside(v, v.beta == T(0) ? T(0) : y, column);
  }
}

#endif

}  // namespace shardmat::batched
