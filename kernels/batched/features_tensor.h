// The parts that kernels for graph convolutions share: W as the tensor cores want it, products in three terms of TF32, loads
// of X, stores of Y. f32 factors are split into two TF32 numbers each, and of the four products all but the least are added
// up (S. Markidis et al., "NVIDIA tensor core programmability, performance & precision", IPDPSW 2018, section V). Tensor
// cores truncate their sums, so each has 16 terms only, and these sums are added up outside of them (H. Ootomo and R.
// Yokota, "Recovering single precision accuracy from tensor cores", IJHPCA 2022).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/batched/operands.h"
#include "kernels/cuda/launch.h"

namespace shardmat::batched {

constexpr int kWarp = 32;
constexpr int kTile = 8;      ///< columns of a product on tensor cores, and its terms
constexpr int kRows = 16;     ///< of such a product, and of a warp
constexpr int kColumns = 16;  ///< of the first factor that a warp multiplies at once
constexpr int kOwn = 2;       ///< rows of a lane
constexpr int kTogether = 4;  ///< tiles of sums that are worked on in turn, so that they do not wait for each other

struct Weights {
  const float* w;
  std::int64_t ldw;
  int in, out;
  int steps;  ///< of kColumns rows, the last perhaps of fewer
};

/// Two entries of W for a lane, as the two numbers that add up to each.
using Split = float4;

constexpr int steps_of(std::int64_t in) { return static_cast<int>((in + kColumns - 1) / kColumns); }
/// Of a block's columns of W in shared memory.
constexpr std::size_t bytes_of_weights(std::int64_t in, int tiles) {
  return static_cast<std::size_t>(steps_of(in)) * (kColumns / kTile) * static_cast<std::size_t>(tiles * kWarp) *
         sizeof(Split);
}

/// The tensor cores ignore the bits that are not TF32's. The nearest such number; of a NaN perhaps another number, what is
/// left then is NaN.
__device__ inline float rounded_tf32(float v) { return __uint_as_float((__float_as_uint(v) + 0x1000) & 0xffffe000); }

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define SHARDMAT_TF32 1
#endif

/// sum = before + a·b; a: 16 × 8 in TF32, b: 8 × 8. Nothing where the GPU is older than that.
__device__ inline void multiply_add(float (&sum)[4], const float (&a)[4], float b0, float b1, const float (&before)[4]) {
#ifdef SHARDMAT_TF32
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, "
      "%13};"
      : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
        "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)), "f"(before[0]), "f"(before[1]), "f"(before[2]), "f"(before[3]));
#endif
}

/// W from column `first_column` on as lanes take it, by `threads` threads, of which this is number `thread`; what pads it is
/// zero. Products 2c and 2c + 1 have rows 16c … 16c + 15 of W for terms: member m of a group of four lanes has 4m, 4m + 1 in
/// the first and 4m + 2, 4m + 3 in the second, so that it adds up four columns of A·X that lie side by side. Columns
/// likewise.
template <int N>
__device__ void split_weights(const Weights& of, int first_column, Split* to, int thread, int threads) {
  const auto at = [&](int k, int n) { return k < of.in && n < of.out ? of.w[k * of.ldw + n] : 0.0f; };
  const int splits = of.steps * (kColumns / kTile) * N * kWarp;
#pragma unroll 8
  for (int i = thread; i < splits; i += threads) {
    const int lane = i % kWarp, tile = i / kWarp % N, step = i / kWarp / N;
    const int member = lane % 4, group = lane / 4;
    const int k = step / 2 * kColumns + member * 4 + step % 2 * 2,
              n = first_column + tile / 2 * 2 * kTile + group / 2 * 4 + tile % 2 * 2 + group % 2;
    const float first = at(k, n), second = at(k + 1, n);
    const float high = rounded_tf32(first), high_second = rounded_tf32(second);
    to[i] = {high, high_second, first - high, second - high_second};
  }
}

template <int N>
__device__ void split_weights(const Weights& of, int first_column, Split* to) {
  split_weights<N>(of, first_column, to, static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x));
}

__device__ inline void add(float4& sum, float value, const float4& x) {
  sum.x += value * x.x, sum.y += value * x.y, sum.z += value * x.z, sum.w += value * x.w;
}

/// Where a lane finds X: up to four columns, of which `left_` are there.
class Place {
 public:
  __device__ Place(const Operands<float, float>& v, std::int32_t row_bytes, int in, int column)
      : x_(v.x + column), row_bytes_(row_bytes), left_(in - column) {}

  /// Of a row, if `there`; else zero. Whole lines and the next come into the L2 cache, for the columns that follow.
  template <bool kWide>
  __device__ float4 row(std::int32_t at, bool there) const {
    float4 v{0, 0, 0, 0};
    if constexpr (kWide) {
      read_ahead(at, there && left_ > 0, v);
    } else if (there) {
      const auto* const from = reinterpret_cast<const float*>(reinterpret_cast<const unsigned char*>(x_) +
                                                              static_cast<std::int64_t>(at) * row_bytes_);
      if (left_ > 0) v.x = from[0];
      if (left_ > 1) v.y = from[1];
      if (left_ > 2) v.z = from[2];
      if (left_ > 3) v.w = from[3];
    }
    return v;
  }

 private:
  /// Nothing where the GPU has no tensor cores for TF32.
  __device__ void read_ahead(std::int32_t at, bool there, float4& v) const {
#ifdef SHARDMAT_TF32
    asm volatile(
        "{\n"
        "  .reg .pred there;\n"
        "  .reg .b64 p;\n"
        "  setp.ne.s32 there, %7, 0;\n"
        "  mad.wide.s32 p, %5, %6, %4;\n"
        "  @there ld.global.L2::256B.v4.f32 {%0, %1, %2, %3}, [p];\n"
        "}"
        : "+f"(v.x), "+f"(v.y), "+f"(v.z), "+f"(v.w)
        : "l"(x_), "r"(at), "r"(row_bytes_), "r"(static_cast<int>(there)));
#endif
  }

  const float* x_;
  std::int32_t row_bytes_;
  int left_;
};

/// Adds the product of 16 columns of the first factor with their rows of W. `w`: the lane's of these.
template <int N>
__device__ void multiply_add(const float4 (&features)[kOwn], const Split* w, float (&sum)[N][4]) {
  const float factor[2][4] = {{features[0].x, features[1].x, features[0].y, features[1].y},
                              {features[0].z, features[1].z, features[0].w, features[1].w}};
  float high[2][4], low[2][4];
#pragma unroll
  for (int p = 0; p < 2; ++p)
#pragma unroll
    for (int i = 0; i < 4; ++i) high[p][i] = rounded_tf32(factor[p][i]), low[p][i] = factor[p][i] - high[p][i];
  constexpr int kAtOnce = N < kTogether ? N : kTogether;
#pragma unroll
  for (int first = 0; first < N; first += kAtOnce) {
    float part[kAtOnce][4];
#pragma unroll
    for (int p = 0; p < 2; ++p) {
      Split b[kAtOnce];
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) b[n] = w[(p * N + first + n) * kWarp];
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) {
        if (p == 0) multiply_add(part[n], low[p], b[n].x, b[n].y, {0, 0, 0, 0});
        else multiply_add(part[n], low[p], b[n].x, b[n].y, part[n]);
      }
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) multiply_add(part[n], high[p], b[n].z, b[n].w, part[n]);
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) multiply_add(part[n], high[p], b[n].x, b[n].y, part[n]);
    }
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[first + n][i] += part[n][i];
  }
}

/// True if rows begin and end at multiples of 16 bytes.
inline bool rows_are_whole(const void* first, std::int64_t leading, std::int64_t columns) {
  return reinterpret_cast<std::uintptr_t>(first) % sizeof(float4) == 0 && leading % 4 == 0 && columns % 4 == 0;
}

/// How rows of Y are stored.
enum class Stores { plain, wide, narrow };  ///< four sums as they are; four, finished; one by one

/// Four columns of a row of Y.
__device__ inline void store_features(const Operands<float, float>& v, Stores how, float* y, int column,
                                      const float (&sum)[4]) {
  if (column >= v.columns) return;
  if (how == Stores::plain) {
    *reinterpret_cast<float4*>(y + column) = {sum[0], sum[1], sum[2], sum[3]};
  } else if (how == Stores::wide) {
    store<false>(v, y + column, column, sum);
  } else {
#pragma unroll
    for (int j = column; j < column + 4; ++j)
      if (j < v.columns) y[j] = finished(v, sum[j - column], v.beta != 0 ? y[j] : 0, j);
  }
}

/// Throws Error(usage) if the device, or the code for it, is older than TF32 on tensor cores.
inline void require_tensor_cores(const void* product) {
  cudaFuncAttributes attributes{};
  SHARDMAT_CUDA_CHECK(cudaFuncGetAttributes(&attributes, product));
  if (attributes.ptxVersion < 80)
    throw Error(ErrorKind::usage, "feature products need a GPU of compute capability 8.0 or later and a build for it");
}

}  // namespace shardmat::batched
