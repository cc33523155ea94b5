// X and Y of a batched product as its kernels see them. A lane loads several columns of a row at once: 16 bytes if all rows
// are aligned to 16 bytes, else two columns or one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "kernels/base/error.h"
#include "kernels/base/host_device.h"
#include "kernels/batched/batched_spmm.h"
#include "kernels/batched/paper_launches.h"

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

  /// True if Y is just the sums.
  bool plain() const { return alpha == T(1) && beta == T(0) && bias == nullptr && !relu; }
};

/// The operands for X and Y with `columns` columns.
template <class T, class A>
Operands<T, A> operands(std::int64_t columns, const void* x, std::int64_t ldx, void* y, std::int64_t ldy,
                        const Epilogue& e) {
  return {static_cast<const A*>(x),
          ldx,
          static_cast<T*>(y),
          ldy,
          static_cast<int>(columns),
          static_cast<T>(e.alpha),
          static_cast<T>(e.beta),
          static_cast<const T*>(e.bias),
          e.relu};
}

/// The value of Y in column `column`, from the sum and the old value of Y.
template <class T, class A>
SHARDMAT_HOST_DEVICE inline T finished(const Operands<T, A>& v, T sum, T old, int column) {
  T out = v.alpha * sum;
  if (v.beta != T(0)) out += v.beta * old;
  if (v.bias != nullptr) out += v.bias[column];
  return v.relu && out < T(0) ? T(0) : out;
}

/// Throws Error(usage) if rows of `columns` entries would overlap.
inline void require_leading(std::int64_t leading, std::int64_t columns, const char* what) {
  if (leading >= columns) return;
  throw Error(ErrorKind::usage, std::string("the leading dimension of ") + what + " is " + std::to_string(leading) +
                                    ", but its rows have " + std::to_string(columns) + " entries");
}

/// Bytes from one row to the next. Throws Error(usage) if they do not fit 32 bits.
template <class E>
std::int32_t bytes_of_row(std::int64_t leading, const char* what) {
  const std::int64_t bytes = leading * static_cast<std::int64_t>(sizeof(E));
  if (bytes > std::numeric_limits<std::int32_t>::max())
    throw Error(ErrorKind::usage, std::string("the rows of ") + what + " are 2 GiB apart or more");
  return static_cast<std::int32_t>(bytes);
}

/// Number of lanes of a sub-warp for `stretches` stretches of columns; a lane takes one stretch in each pass. A power of two
/// up to 32, chosen so that few lanes are idle in the last pass.
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

template <int W, bool kPlainSums>
struct Instance {
  static constexpr int width = W;
  static constexpr bool plain = kPlainSums;
};

/// Calls f(Instance<W, plain>{}) with the largest W that the alignment allows.
template <class T, class A, class F>
void with_instance(const Operands<T, A>& v, const F& f) {
  constexpr int kWide = 16 / static_cast<int>(sizeof(A));
  const auto fits = [&](int width) {
    const auto multiple = [&](const void* p, std::size_t size) {
      // Y and the bias take more than one store where their type is wider than X's.
      return reinterpret_cast<std::uintptr_t>(p) % std::min<std::size_t>(16, static_cast<std::size_t>(width) * size) == 0;
    };
    return v.columns % width == 0 && v.ldx % width == 0 && v.ldy % width == 0 && multiple(v.x, sizeof(A)) &&
           multiple(v.y, sizeof(T)) && (v.bias == nullptr || multiple(v.bias, sizeof(T)));
  };
  const auto call = [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    if (v.plain()) f(Instance<kWidth, true>{});
    else f(Instance<kWidth, false>{});
  };
  if (fits(kWide)) return call(std::integral_constant<int, kWide>{});
  if constexpr (kWide > 2)
    if (fits(2)) return call(std::integral_constant<int, 2>{});
  call(std::integral_constant<int, 1>{});
}

#ifdef __CUDACC__

template <class E, int W>
struct alignas(sizeof(E) * W) Stretch {
  E of[W];
};

/// The integer type with the size of a stretch. Loading it is one instruction; loading entry by entry takes several.
template <int kBytes>
struct Word;
template <>
struct Word<16> {
  using type = int4;
};
template <>
struct Word<8> {
  using type = int2;
};
template <>
struct Word<4> {
  using type = int;
};
template <>
struct Word<2> {
  using type = short;
};

/// Loads W entries of device memory. Does not use __ldg(), which requires data that stays constant while the kernel runs: a
/// kernel that is launched early runs while the previous kernel still writes its operands.
template <int W, class E>
__device__ Stretch<E, W> load(const E* p) {
  using Bits = typename Word<sizeof(Stretch<E, W>)>::type;
  Stretch<E, W> v;
  *reinterpret_cast<Bits*>(&v) = *reinterpret_cast<const Bits*>(p);
  return v;
}
/// Loads W entries of shared memory.
template <int W, class E>
__device__ Stretch<E, W> load_shared(const void* p) {
  using Bits = typename Word<sizeof(Stretch<E, W>)>::type;
  Stretch<E, W> v;
  *reinterpret_cast<Bits*>(&v) = *static_cast<const Bits*>(p);
  return v;
}

template <class T, class A, int W>
__device__ void add_product(T (&sum)[W], A value, const Stretch<A, W>& x) {
#pragma unroll
  for (int w = 0; w < W; ++w) sum[w] += dense::widened(value) * dense::widened(x.of[w]);
}

/// The initial value of Y without the sum (beta·y + bias), for kernels that add products to Y one by one.
template <class T, class A>
__device__ T set_aside(const Operands<T, A>& v, T old, int column) {
  T out = v.beta != T(0) ? v.beta * old : T(0);
  if (v.bias != nullptr) out += v.bias[column];
  return out;
}

/// Writes the sums of W columns, from `column` on, to Y at `y`.
template <bool kPlain, class T, class A, int W>
__device__ void store(const Operands<T, A>& v, T* y, int column, const T (&sum)[W]) {
  constexpr int kAtOnce = W * static_cast<int>(sizeof(T)) <= 16 ? W : 16 / static_cast<int>(sizeof(T));
#pragma unroll
  for (int first = 0; first < W; first += kAtOnce) {
    Stretch<T, kAtOnce>& at = *reinterpret_cast<Stretch<T, kAtOnce>*>(y + first);
    Stretch<T, kAtOnce> out{};
    if constexpr (kPlain) {
#pragma unroll
      for (int w = 0; w < kAtOnce; ++w) out.of[w] = sum[first + w];
    } else {
      if (v.beta != T(0)) out = at;
#pragma unroll
      for (int w = 0; w < kAtOnce; ++w) out.of[w] = finished(v, sum[first + w], out.of[w], column + first + w);
    }
    at = out;
  }
}

/// For kernels that add to Y: the pass `before` sets Y to beta·Y + bias; the pass `after` applies the rectifier.
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
