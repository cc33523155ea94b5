// X and Y of a product with several right-hand sides, in the form that kernels need: row-major; every row begins at a
// multiple of a lane's load and is padded to a multiple of it. A lane holds W columns of a row: 16 bytes of X (8 for two
// columns of f32). G neighbouring lanes hold a stretch of G·W columns. A lane handles P consecutive stretches.
// row_major_plan.h copies other operands into this form.
#pragma once

#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/base/half.h"

namespace shardmat::dense {

constexpr int kWideBytes = 16;
/// Columns that a lane loads at once, if there are more than two columns.
template <class T>
constexpr int kWidth = kWideBytes / static_cast<int>(sizeof(T));
/// Columns that a lane loads at once in a product with `count` right-hand sides; `value_bytes`: size of a value of X.
constexpr int width_for(std::int64_t count, std::size_t value_bytes) {
  return count == 2 && value_bytes > 2 ? 2 : kWideBytes / static_cast<int>(value_bytes);
}

/// Columns of a row that is padded to whole loads of `width` columns.
constexpr int padded_columns(std::int64_t count, int width) { return static_cast<int>((count + width - 1) / width * width); }

/// Number of lanes that hold a row of `count` columns.
constexpr std::int64_t lanes_of_row(std::int64_t count, std::size_t value_bytes) {
  return (count * static_cast<std::int64_t>(value_bytes) + kWideBytes - 1) / kWideBytes;
}
/// Encodes lanes and passes as one number, for switches over the instances of a kernel; -1 for more than 2 passes.
constexpr int shape_of(int lanes, int passes) { return passes == 1 || passes == 2 ? lanes * 10 + passes : -1; }

/// `A`: type of X and of the matrix; `T`: type of Y and of sums.
template <class T, class A = T>
struct Rows {
  T alpha;
  const A* x;
  T beta;
  T* y;
  std::int32_t x_bytes, y_bytes;  ///< bytes from one row to the next
  int columns;                    ///< a multiple of the width
};

#ifdef __CUDACC__

template <class T, int W>
struct alignas(sizeof(T) * W) Wide {
  T of[W];
};

/// Loads whose order the compiler keeps. Otherwise it would wait for some loads before it issues others, to save registers.
template <class V>
__device__ V load(const char* p) {
  static_assert(sizeof(V) == 16);
  uint4 bits;
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)
               : "l"(p));
  return *reinterpret_cast<const V*>(&bits);
}
template <>
__device__ inline Wide<double, 2> load<Wide<double, 2>>(const char* p) {
  Wide<double, 2> v;
  asm volatile("ld.global.nc.v2.f64 {%0, %1}, [%2];" : "=d"(v.of[0]), "=d"(v.of[1]) : "l"(p));
  return v;
}
template <>
__device__ inline Wide<float, 4> load<Wide<float, 4>>(const char* p) {
  Wide<float, 4> v;
  asm volatile("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.of[0]), "=f"(v.of[1]), "=f"(v.of[2]), "=f"(v.of[3])
               : "l"(p));
  return v;
}
template <>
__device__ inline Wide<float, 2> load<Wide<float, 2>>(const char* p) {
  Wide<float, 2> v;
  asm volatile("ld.global.nc.v2.f32 {%0, %1}, [%2];" : "=f"(v.of[0]), "=f"(v.of[1]) : "l"(p));
  return v;
}
/// The same without a fixed order; may be conditional.
template <class V>
__device__ V gather(const char* p) {
  V v;
  if constexpr (sizeof(V) == 16) {
    *reinterpret_cast<int4*>(&v) = __ldg(reinterpret_cast<const int4*>(p));
  } else {
    static_assert(sizeof(V) == 8);
    *reinterpret_cast<int2*>(&v) = __ldg(reinterpret_cast<const int2*>(p));
  }
  return v;
}
/// Address of row `row`; rows begin at `base`, `bytes` apart. One instruction; a 64-bit product would take several.
__device__ inline const char* row_at(const char* base, std::int32_t row, std::int32_t bytes) {
  const char* at;
  asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(at) : "r"(row), "r"(bytes), "l"(base));
  return at;
}
/// An ordered load, from shared memory if `in_shared`, else from global memory.
template <class V>
__device__ V load_either(bool in_shared, unsigned shared, const char* p) {
  static_assert(sizeof(V) == 16);
  uint4 bits;
  asm volatile(
      "{.reg .pred s; setp.ne.s32 s, %6, 0;\n\t"
      "@s ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n\t"
      "@!s ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%5];}"
      : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)
      : "r"(shared), "l"(p), "r"(static_cast<int>(in_shared)));
  return *reinterpret_cast<const V*>(&bits);
}
template <>
__device__ inline Wide<double, 2> load_either<Wide<double, 2>>(bool in_shared, unsigned shared, const char* p) {
  Wide<double, 2> v;
  asm volatile(
      "{.reg .pred s; setp.ne.s32 s, %4, 0;\n\t"
      "@s ld.shared.v2.f64 {%0, %1}, [%2];\n\t"
      "@!s ld.global.nc.v2.f64 {%0, %1}, [%3];}"
      : "=d"(v.of[0]), "=d"(v.of[1])
      : "r"(shared), "l"(p), "r"(static_cast<int>(in_shared)));
  return v;
}
template <>
__device__ inline Wide<float, 4> load_either<Wide<float, 4>>(bool in_shared, unsigned shared, const char* p) {
  Wide<float, 4> v;
  asm volatile(
      "{.reg .pred s; setp.ne.s32 s, %6, 0;\n\t"
      "@s ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];\n\t"
      "@!s ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%5];}"
      : "=f"(v.of[0]), "=f"(v.of[1]), "=f"(v.of[2]), "=f"(v.of[3])
      : "r"(shared), "l"(p), "r"(static_cast<int>(in_shared)));
  return v;
}
template <>
__device__ inline Wide<float, 2> load_either<Wide<float, 2>>(bool in_shared, unsigned shared, const char* p) {
  Wide<float, 2> v;
  asm volatile(
      "{.reg .pred s; setp.ne.s32 s, %4, 0;\n\t"
      "@s ld.shared.v2.f32 {%0, %1}, [%2];\n\t"
      "@!s ld.global.nc.v2.f32 {%0, %1}, [%3];}"
      : "=f"(v.of[0]), "=f"(v.of[1])
      : "r"(shared), "l"(p), "r"(static_cast<int>(in_shared)));
  return v;
}
/// A value in the type of sums.
__device__ inline double widened(double v) { return v; }
__device__ inline float widened(float v) { return v; }
__device__ inline float widened(F16 v) { return __half2float(__ushort_as_half(v.bits)); }
__device__ inline float widened(Bf16 v) { return __uint_as_float(static_cast<unsigned>(v.bits) << 16); }

/// sum + a·x without fused multiply-add, as csr_segmented.cu rounds.
__device__ inline double plus_rounded(double sum, double a, double x) { return __dadd_rn(sum, __dmul_rn(a, x)); }
__device__ inline float plus_rounded(float sum, float a, float x) { return __fadd_rn(sum, __fmul_rn(a, x)); }

/// An ordered load of N values of the matrix: N·sizeof(T) ≤ 16 bytes, aligned to this size. They bypass L1, which is for X.
template <int N>
__device__ void stream(double (&v)[N], const double* p) {
  if constexpr (N == 1) asm volatile("ld.global.nc.L1::no_allocate.f64 %0, [%1];" : "=d"(v[0]) : "l"(p));
  else asm volatile("ld.global.nc.L1::no_allocate.v2.f64 {%0, %1}, [%2];" : "=d"(v[0]), "=d"(v[1]) : "l"(p));
}
template <int N>
__device__ void stream(float (&v)[N], const float* p) {
  if constexpr (N == 1) asm volatile("ld.global.nc.L1::no_allocate.f32 %0, [%1];" : "=f"(v[0]) : "l"(p));
  else
    asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                 : "l"(p));
}

/// y = alpha·sum + beta·y for W columns of a row, rounded as kernels for one vector round.
template <class T, int W, class A>
__device__ void store_row(const Rows<T, A>& v, T* y, const T (&sum)[W]) {
  constexpr int kAtOnce = W < kWidth<T> ? W : kWidth<T>;
#pragma unroll
  for (int part = 0; part < W; part += kAtOnce) {
    Wide<T, kAtOnce>& at = *reinterpret_cast<Wide<T, kAtOnce>*>(y + part);
    Wide<T, kAtOnce> out;
    if (v.beta == T(0)) {
#pragma unroll
      for (int w = 0; w < kAtOnce; ++w) out.of[w] = v.alpha * sum[part + w];
    } else {
      out = at;
#pragma unroll
      for (int w = 0; w < kAtOnce; ++w) out.of[w] = fma(v.beta, out.of[w], v.alpha * sum[part + w]);
    }
    at = out;
  }
}

/// The columns of a lane: P times W columns, from `first`, G·W apart. Lanes beyond the last column compute the same as the
/// first lane and write nothing; this needs P = 1 unless all stretches are complete.
template <class T, int W, int G, int P, class A = T>
struct Stretch {
  static constexpr int kColumns = G * W * P;
  static constexpr int kStepBytes = G * W * static_cast<int>(sizeof(A));  ///< bytes in X from one stretch to the next
  int first;
  bool real;

  __device__ Stretch(const Rows<T, A>& v, int begin, int lane) : first(begin + lane % G * W), real(first < v.columns) {
    if (!real) first = 0;
  }
  /// Address of the lane's first column in the first row of X.
  __device__ const char* x(const Rows<T, A>& v) const { return reinterpret_cast<const char*>(v.x + first); }
  /// y = alpha·sum + beta·y for one row.
  __device__ void store(const Rows<T, A>& v, std::int64_t row, const T (&sum)[P][W]) const {
    if (!real) return;
    T* const y = reinterpret_cast<T*>(reinterpret_cast<char*>(v.y + first) + row * v.y_bytes);
#pragma unroll
    for (int q = 0; q < P; ++q) store_row(v, y + q * (G * W), sum[q]);
  }
};

#endif

/// Divides the columns of a product among launches. Blocks of lanes·passes·width columns come first: whole(first column,
/// blocks). The remaining columns take one pass and the fewest lanes that hold them, at most 8: rest(first column, lanes).
template <class Whole, class Rest>
void split_columns(int columns, int width, int lanes, int passes, const Whole& whole, const Rest& rest) {
  constexpr int kMostBlocks = 65535;  // limit of a grid's y dimension
  const int block = lanes * passes * width, blocks = columns / block;
  for (int done = 0; done < blocks; done += kMostBlocks) whole(done * block, std::min(blocks - done, kMostBlocks));
  for (int first = blocks * block; first < columns;) {
    int few = 1;
    while (few < 8 && few * width < columns - first) few *= 2;
    rest(first, few);
    first += few * width;
  }
}

}  // namespace shardmat::dense
