// The sum of a row, while a thread goes through nonzeros of csr_balanced_spmm.cu: P·W columns of Y.
#pragma once

#include "kernels/cuda/dense_rows.h"

namespace shardmat::row_sums {

using dense::Wide;

/// The sum of a row in a task so far: one sum from the first nonzero to the last.
template <class T, int W, int P, bool kOrdered>
struct RowSum {
  T result[P][W] = {};

  __device__ explicit RowSum(Wide<T, W>*, int) {}
  template <class A>
  __device__ void add(int q, int w, T a, A x) {
    result[q][w] = fma(a, dense::widened(x), result[q][w]);
  }
  __device__ void close_segment() {}
  __device__ void close_group() {}
  __device__ void close_all() {}
  __device__ void clear() {
#pragma unroll
    for (int q = 0; q < P; ++q)
#pragma unroll
      for (int w = 0; w < W; ++w) result[q][w] = 0;
  }
};

/// Sums over whole groups of nonzeros, a thread's own: in registers, or in shared memory where registers are scarce. Shared
/// memory takes room from L1, which costs more where it saves no registers.
template <class T, int W, int P>
struct GroupSums {
  static constexpr bool kShared = P > 1;
  static constexpr int kBytes = kShared ? P * W * static_cast<int>(sizeof(T)) : 0;  ///< of shared memory for a thread
  Wide<T, W> own[kShared ? 1 : P];
  Wide<T, W>* shared;  ///< `stride` entries from one pass to the next
  int stride;

  __device__ Wide<T, W>& operator[](int q) {
    if constexpr (kShared) return shared[q * stride];
    else return own[q];
  }
};

/// The same in the order of `exact`.
template <class T, int W, int P>
struct RowSum<T, W, P, true> {
  T result[P][W] = {};   ///< over whole segments of a group; after close_all() of everything
  T segment[P][W] = {};  ///< over the nonzeros of a segment
  GroupSums<T, W, P> groups;
  bool has_groups = false;

  __device__ RowSum(Wide<T, W>* of_groups, int stride) : groups{{}, of_groups, stride} {}
  __device__ void add(int q, int w, T a, T x) { segment[q][w] = dense::plus_rounded(segment[q][w], a, x); }
  __device__ void close_segment() {
#pragma unroll
    for (int q = 0; q < P; ++q)
#pragma unroll
      for (int w = 0; w < W; ++w) result[q][w] += segment[q][w], segment[q][w] = 0;
  }
  __device__ void close_group() {
#pragma unroll
    for (int q = 0; q < P; ++q) {
      Wide<T, W> sum;
      if (has_groups) sum = groups[q];
#pragma unroll
      for (int w = 0; w < W; ++w) sum.of[w] = has_groups ? sum.of[w] + result[q][w] : result[q][w], result[q][w] = 0;
      groups[q] = sum;
    }
    has_groups = true;
  }
  __device__ void close_all() {
    close_segment();
    if (!has_groups) return;
#pragma unroll
    for (int q = 0; q < P; ++q) {
      const Wide<T, W> sum = groups[q];
#pragma unroll
      for (int w = 0; w < W; ++w) result[q][w] += sum.of[w];
    }
  }
  __device__ void clear() {
#pragma unroll
    for (int q = 0; q < P; ++q)
#pragma unroll
      for (int w = 0; w < W; ++w) result[q][w] = 0;
    has_groups = false;
  }
};

}  // namespace shardmat::row_sums
