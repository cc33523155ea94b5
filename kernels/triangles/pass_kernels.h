// The kernel of a pass over a triangle, for the files that compile it for a type each.
#pragma once

#include <type_traits>

#include "kernels/base/known_size.h"
#include "kernels/cuda/launch.h"
#include "kernels/triangles/pass.h"
#include "kernels/triangles/slices.h"

namespace shardmat::triangles {
namespace {

constexpr int kThreads = 256;  ///< of a thread block
constexpr int kWarps = kThreads / kLanes;

// What other thread blocks write is read and written past the first cache. An entry is all there or not there at all, and
// nothing else is read because of it: no fence is needed.
__device__ inline float load_now(const float* from) {
  float value;
  asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(value) : "l"(from) : "memory");
  return value;
}
__device__ inline double load_now(const double* from) {
  double value;
  asm volatile("ld.relaxed.gpu.global.f64 %0, [%1];" : "=d"(value) : "l"(from) : "memory");
  return value;
}
__device__ inline void store_now(float* to, float value) {
  asm volatile("st.relaxed.gpu.global.f32 [%0], %1;" ::"l"(to), "f"(value) : "memory");
}
__device__ inline void store_now(double* to, double value) {
  asm volatile("st.relaxed.gpu.global.f64 [%0], %1;" ::"l"(to), "d"(value) : "memory");
}

/// An entry that is not there yet: no operation of a GPU has this NaN as its result.
__device__ inline bool is_absent(float value) { return __float_as_uint(value) == 0xffffffffu; }
__device__ inline bool is_absent(double value) { return __double_as_longlong(value) == -1; }
template <class V>
__device__ inline V absent() {
  if constexpr (sizeof(V) == 4) return __uint_as_float(0xffffffffu);
  else return __longlong_as_double(-1);
}
/// A NaN of the caller may look so.
template <class V>
__device__ inline V not_absent(V value) {
  return is_absent(value) ? V(0) / V(0) : value;
}

template <class V, int S, bool kWaits>
__global__ void __launch_bounds__(kThreads) solve_slices(Pass<V> p) {
  constexpr int kEntries = S * S, kAhead = kEntries == 1 ? 4 : kEntries <= 4 ? 2 : 1;
  const int warp = static_cast<int>(threadIdx.x) / kLanes, lane = static_cast<int>(threadIdx.x) % kLanes;
  std::int64_t group = blockIdx.x;
  int j = blockIdx.y;
  if constexpr (kWaits) {  // all slices before those of a thread block were taken before, so none waits for ever
    __shared__ unsigned taken;
    cuda::after_previous();
    if (threadIdx.x == 0) {
      taken = atomicAdd(p.ticket, 1u);
      if (taken == 0) *p.next_ticket = 0;
    }
    __syncthreads();
    group = taken / p.columns, j = static_cast<int>(taken % p.columns);
  }
  const std::int64_t slice = p.first + group * kWarps + warp;
  const bool real = slice < p.end;
  const int sub = lane & (p.team - 1);
  const std::int64_t row = real ? __ldg(p.row + slice * (kLanes / p.team) + lane / p.team) : -1;
  std::int64_t slot = real && p.couples ? __ldg(p.start + slice) : 0;
  const std::int64_t end = real && p.couples ? __ldg(p.start + slice + 1) : 0;
  if constexpr (!kWaits) cuda::after_previous();
  if (!real) return;
  const bool ends = row >= 0 && sub == 0;
  const std::int64_t at = (j * p.count + row) * S;
  V sum[S] = {};
  if (ends) {
    V b[S];
#pragma unroll
    for (int u = 0; u < S; ++u) {
      if (p.r != nullptr) {
        const std::int64_t place = static_cast<std::int64_t>(__ldg(p.place + row * S + u)) * p.columns + j;
        b[u] = p.f64 ? static_cast<V>(static_cast<const double*>(p.r)[place])
                     : static_cast<V>(static_cast<const float*>(p.r)[place]);
      } else {
        b[u] = p.b[at + u];
      }
    }
    if (p.inverse != nullptr) {
#pragma unroll
      for (int c = 0; c < S; ++c)
#pragma unroll
        for (int u = 0; u < S; ++u) sum[u] = fma(__ldg(p.inverse + row * kEntries + c * S + u), b[c], sum[u]);
    } else {
#pragma unroll
      for (int u = 0; u < S; ++u) sum[u] = b[u];
    }
    if constexpr (kWaits)
#pragma unroll
      for (int u = 0; u < S; ++u) p.next[at + u] = absent<V>();
  }
  const V* const from = p.from + j * p.count * S;
  for (; slot < end; slot += kAhead) {
    V of_t[kAhead][kEntries], of_x[kAhead][S];
    std::int64_t column[kAhead];
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      column[a] = slot + a < end ? static_cast<std::int64_t>(__ldcs(p.column + (slot + a) * kLanes + lane)) * S : -1;
#pragma unroll
      for (int e = 0; e < kEntries; ++e)
        of_t[a][e] = column[a] >= 0 ? __ldcs(p.value + ((slot + a) * kEntries + e) * kLanes + lane) : V(0);
    }
#pragma unroll
    for (int a = 0; a < kAhead; ++a)
#pragma unroll
      for (int c = 0; c < S; ++c) {
        if constexpr (kWaits) of_x[a][c] = column[a] >= 0 ? load_now(from + column[a] + c) : V(0);
        else of_x[a][c] = column[a] >= 0 ? from[column[a] + c] : V(0);
      }
    if constexpr (kWaits) {
      for (bool waiting = true; waiting;) {
        waiting = false;
#pragma unroll
        for (int a = 0; a < kAhead; ++a)
#pragma unroll
          for (int c = 0; c < S; ++c)
            if (is_absent(of_x[a][c])) of_x[a][c] = load_now(from + column[a] + c), waiting = true;
      }
    }
#pragma unroll
    for (int a = 0; a < kAhead; ++a)
#pragma unroll
      for (int c = 0; c < S; ++c)
#pragma unroll
        for (int u = 0; u < S; ++u) sum[u] = fma(-of_t[a][c * S + u], of_x[a][c], sum[u]);
  }
  for (int other = p.team / 2; other > 0; other /= 2)
#pragma unroll
    for (int u = 0; u < S; ++u) sum[u] += __shfl_xor_sync(0xffffffffu, sum[u], other);
  if (!ends) return;
#pragma unroll
  for (int u = 0; u < S; ++u) {
    if constexpr (kWaits) store_now(p.to + at + u, not_absent(sum[u]));
    else if (p.to != nullptr) p.to[at + u] = sum[u];
    if (p.z != nullptr) {
      const std::int64_t place = static_cast<std::int64_t>(__ldg(p.place + row * S + u)) * p.columns + j;
      if (p.f64) static_cast<double*>(p.z)[place] = static_cast<double>(sum[u]);
      else static_cast<float*>(p.z)[place] = static_cast<float>(sum[u]);
    }
  }
}

}  // namespace

template <class V>
void run_pass(const Pass<V>& pass, int size, bool waits, Stream& stream) {
  const std::int64_t blocks = (pass.end - pass.first + kWarps - 1) / kWarps;
  with_known_size<kMostUnknowns>(size, [&]<int S>(std::integral_constant<int, S>) {
    if (waits) cuda::launch_grid_early(solve_slices<V, S, true>, blocks * pass.columns, 1, dim3(kThreads), 0, stream, pass);
    else cuda::launch_grid_early(solve_slices<V, S, false>, blocks, pass.columns, dim3(kThreads), 0, stream, pass);
  });
}

}  // namespace shardmat::triangles
