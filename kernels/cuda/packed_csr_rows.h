// Rows of a slice that packed rows store as CSR, with many right-hand sides.
#pragma once

#include "kernels/cuda/dense_rows.h"
#include "kernels/cuda/packed_rows.h"

namespace shardmat::packed {

/// Adds nonzeros begin … end - 1 of a slice stored as CSR rows, which are a row, by stretches (lanes_of_csr_row()).
template <class T, int W, int G, int P>
__device__ void add_csr_row(std::int32_t begin, std::int32_t end, std::int32_t stretch, const std::int32_t* columns,
                            const T* values, const char* x, std::int32_t x_bytes, T (&sum)[P][W]) {
  constexpr int kUnroll = 2;  // more would take registers from the slots of all slices
  T of_stretch[P][W] = {};
  std::int32_t next = begin + stretch;
  const auto finish_stretch = [&] {
#pragma unroll
    for (int q = 0; q < P; ++q)
#pragma unroll
      for (int w = 0; w < W; ++w) sum[q][w] += of_stretch[q][w], of_stretch[q][w] = 0;
    next += stretch;
  };
#pragma unroll 1
  for (std::int32_t k = begin; k < end; k += kUnroll) {
    T value[kUnroll];
    dense::Wide<T, W> of_x[kUnroll][P];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const std::int32_t at = min(k + u, end - 1);
      value[u] = __ldg(values + at);
      const char* row = x + static_cast<std::int64_t>(__ldg(columns + at)) * x_bytes;
#pragma unroll
      for (int q = 0; q < P; ++q)
        of_x[u][q] = dense::load<dense::Wide<T, W>>(row + q * dense::Stretch<T, W, G, P>::kStepBytes);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (k + u < end) {
        if (k + u == next) finish_stretch();
#pragma unroll
        for (int q = 0; q < P; ++q)
#pragma unroll
          for (int w = 0; w < W; ++w) of_stretch[q][w] = fma(value[u], of_x[u][q].of[w], of_stretch[q][w]);
      }
  }
  finish_stretch();
}

}  // namespace shardmat::packed
