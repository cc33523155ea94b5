// Steps of GMRES over the vectors of a basis (krylov/gmres_steps.h), for one column on the host: some entries at a time, and
// some vectors at a time, in loops that become vector arithmetic. Called entry by entry these steps would not: how many
// vectors there are is known only when they run.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/host/lanes.h"
#include "kernels/krylov/gmres_steps.h"

namespace shardmat::krylov {

constexpr int kTile = 512;  ///< entries: some vectors of them stay in the first cache
constexpr int kTileVectors = 4;

/// Calls use(first vector, std::integral_constant<int, how many>) for groups of vectors.
template <class Use>
SHARDMAT_INLINE void each_group_of_vectors(int count, const Use& use) {
  int i = 0;
  for (; i + kTileVectors <= count; i += kTileVectors) use(i, std::integral_constant<int, kTileVectors>());
  if (count - i >= 2) use(i, std::integral_constant<int, 2>()), i += 2;
  if (count > i) use(i, std::integral_constant<int, 1>());
}

/// sum = Σ h_i·v_i for entries [begin, begin + n).
template <class T, int W>
SHARDMAT_INLINE void combine_tile(const GmresBasis<T, W>& basis, std::int64_t begin, int n, T* sum) {
  std::fill_n(sum, n, T(0));
  each_group_of_vectors(basis.count, [&]<int G>(int first, std::integral_constant<int, G>) SHARDMAT_INLINE_LAMBDA {
    const T* const v = basis.v + first * basis.apart + begin;
    const std::int64_t apart = basis.apart;
    T h[kTileVectors] = {};
    for (int i = 0; i < G; ++i) h[i] = static_cast<T>(basis.h[first + i]);
#pragma omp simd
    for (int k = 0; k < n; ++k) {
      T all = sum[k];
      for (int i = 0; i < G; ++i) all += h[i] * v[i * apart + k];
      sum[k] = all;
    }
  });
}

/// Adds v_i·w to `to`, and w·w behind the last one with `self`.
template <class T, int W>
SHARDMAT_INLINE void dots_tile(const GmresBasis<T, W>& basis, const T* w, std::int64_t begin, int n, bool self,
                               Sums<W>& to) {
  w += begin;
  each_group_of_vectors(basis.count, [&]<int G>(int first, std::integral_constant<int, G>) SHARDMAT_INLINE_LAMBDA {
    const T* const v0 = basis.v + first * basis.apart + begin;
    const T* const v1 = v0 + (G > 1 ? basis.apart : 0);
    const T* const v2 = v0 + (G > 2 ? 2 * basis.apart : 0);
    const T* const v3 = v0 + (G > 3 ? 3 * basis.apart : 0);
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (int k = 0; k < n; ++k) {
      const auto with = static_cast<double>(w[k]);
      s0 += with * static_cast<double>(v0[k]);
      if constexpr (G > 1) s1 += with * static_cast<double>(v1[k]);
      if constexpr (G > 2) s2 += with * static_cast<double>(v2[k]);
      if constexpr (G > 3) s3 += with * static_cast<double>(v3[k]);
    }
    const double found[] = {s0, s1, s2, s3};
    for (int i = 0; i < G; ++i) to.of[first + i] += found[i];
  });
  if (!self) return;
  double square = 0;
#pragma omp simd reduction(+ : square)
  for (int k = 0; k < n; ++k) square += static_cast<double>(w[k]) * static_cast<double>(w[k]);
  to.of[basis.count] += square;
}

template <class T, int W, class Factors>
SHARDMAT_INLINE void run_tile(const GmresDots<T, W>& step, const Factors&, std::int64_t begin, int n, Sums<W>& sums) {
  dots_tile(step.basis, step.w, begin, n, step.self, sums);
}

template <class T, int W, class Factors>
SHARDMAT_INLINE void run_tile(const GmresAdd<T, W>& step, const Factors&, std::int64_t begin, int n, Sums<0>&) {
  T sum[kTile];
  combine_tile(step.basis, begin, n, sum);
  T* const w = step.w + begin;
  const T sign = static_cast<T>(step.sign);
  if (step.scale == nullptr) {
#pragma omp simd
    for (int k = 0; k < n; ++k) w[k] += sign * sum[k];
    return;
  }
  const T* const scale = step.scale + begin;
#pragma omp simd
  for (int k = 0; k < n; ++k) w[k] += scale[k] * (sign * sum[k]);
}

template <class T, int W, class Factors>
SHARDMAT_INLINE void run_tile(const GmresAddDots<T, W>& step, const Factors&, std::int64_t begin, int n, Sums<W>& sums) {
  T sum[kTile];
  combine_tile(step.basis, begin, n, sum);
  T* const w = step.w + begin;
#pragma omp simd
  for (int k = 0; k < n; ++k) w[k] -= sum[k];
  dots_tile(step.basis, step.w, begin, n, true, sums);
}

template <class T, int W, Scaling kScaling, class Factors>
SHARDMAT_INLINE void run_tile(const GmresAddSpread<T, W, kScaling>& step, const Factors& factors, std::int64_t begin, int n,
                              Sums<0>&) {
  T sum[kTile];
  combine_tile(step.basis, begin, n, sum);
  const T inverse = factors.inverse;
  T *const v = step.spread.v + begin, *const slot = step.spread.slot + begin;
  const T* const scale = kScaling == Scaling::diagonal ? step.spread.scale + begin : nullptr;
#pragma omp simd
  for (int k = 0; k < n; ++k) {
    const T value = inverse * (v[k] - sum[k]);
    v[k] = value;
    if constexpr (kScaling == Scaling::none) slot[k] = value;
    if constexpr (kScaling == Scaling::diagonal) slot[k] = scale[k] * value;
  }
}

}  // namespace shardmat::krylov
