// Dot products with a fixed grid and a fixed tree, so the sum does not depend on scheduling.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/vector_backends.h"

namespace shardmat {
namespace {

constexpr int kThreads = 256;

/// Sums a over the thread block in a fixed order; valid in thread 0.
__device__ double block_sum(double a) {
  __shared__ double of_warp[kThreads / 32];
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) a += __shfl_down_sync(0xffffffffu, a, offset);
  __syncthreads();  // of_warp may still be read from the call before
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = a;
  __syncthreads();
  double sum = 0;
  if (threadIdx.x == 0)
    for (const double w : of_warp) sum += w;
  return sum;
}

/// The block that is done last adds the partial sums of all, in their order. `done` is 0 before and after.
template <class T>
__global__ void dot_products(std::int64_t n, const T* __restrict__ x, const T* __restrict__ y, double* partial,
                             unsigned* done, double* __restrict__ result) {
  double xy = 0, yy = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n;
       i += static_cast<std::int64_t>(kDotBlocks) * kThreads) {
    const double yi = static_cast<double>(y[i]);
    xy += static_cast<double>(x[i]) * yi;
    yy += yi * yi;
  }
  xy = block_sum(xy);
  yy = block_sum(yy);
  bool last = false;
  if (threadIdx.x == 0) {
    partial[2 * blockIdx.x] = xy, partial[2 * blockIdx.x + 1] = yy;
    __threadfence();
    last = atomicInc(done, kDotBlocks - 1) == kDotBlocks - 1;
  }
  if (!__syncthreads_or(last)) return;
  __threadfence();
  xy = 0, yy = 0;
  for (int b = threadIdx.x; b < kDotBlocks; b += kThreads) xy += __ldcg(partial + 2 * b), yy += __ldcg(partial + 2 * b + 1);
  xy = block_sum(xy);
  yy = block_sum(yy);
  if (threadIdx.x == 0) result[0] = xy, result[1] = yy;
}

template <class T>
__global__ void scale_by_inverse_norm(std::int64_t n, const T* __restrict__ y, const double* __restrict__ norm_squared,
                                      T* __restrict__ x) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) x[i] = static_cast<T>((*norm_squared > 0 ? rsqrt(*norm_squared) : 0.0) * static_cast<double>(y[i]));
}

/// Entries of `words` words; a thread copies one word.
template <class Word>
__global__ void gather(std::int64_t n, int words, const std::int32_t* __restrict__ places, const Word* __restrict__ from,
                       Word* __restrict__ to) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t i = words == 1 ? at : at / words;
  if (i < n) to[at] = from[static_cast<std::int64_t>(places[i]) * words + (at - i * words)];
}

/// Rows of `words` words; blockDim.x threads take a row.
template <class Word>
__global__ void copy_words(std::int64_t n, int words, const Word* __restrict__ from, std::int64_t from_apart,
                           Word* __restrict__ to, std::int64_t to_apart) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= n) return;
  for (int word = static_cast<int>(threadIdx.x); word < words; word += static_cast<int>(blockDim.x))
    to[row * to_apart + word] = from[row * from_apart + word];
}

void dots(ValueType type, std::int64_t n, const void* x, const void* y, double* partial, double* result, Stream& stream) {
  dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    cuda::launch(dot_products<T>, std::int64_t{kDotBlocks} * kThreads, kThreads, stream, n, static_cast<const T*>(x),
                 static_cast<const T*>(y), partial, reinterpret_cast<unsigned*>(partial + 2 * kDotBlocks), result);
  });
}

void normalise_cuda(ValueType type, std::int64_t n, const void* y, const double* norm_squared, void* x, Stream& stream) {
  dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    cuda::launch(scale_by_inverse_norm<T>, n, kThreads, stream, n, static_cast<const T*>(y), norm_squared,
                 static_cast<T*>(x));
  });
}

/// Calls copy(Word()) with the widest word whose size divides `bytes`: sizes and addresses joined by |.
template <class F>
void with_word(std::size_t bytes, const F& copy) {
  if (bytes % 16 == 0) copy(int4{});
  else if (bytes % 8 == 0) copy(int2{});
  else if (bytes % 4 == 0) copy(int{});
  else copy(short{});
}

void gather_cuda(std::size_t entry_bytes, std::int64_t n, const std::int32_t* places, const void* from, void* to,
                 Stream& stream) {
  with_word(entry_bytes, [&]<class Word>(Word) {
    const auto words = static_cast<std::int64_t>(entry_bytes / sizeof(Word));
    cuda::launch(gather<Word>, n * words, kThreads, stream, n, static_cast<int>(words), places,
                 static_cast<const Word*>(from), static_cast<Word*>(to));
  });
}

void copy_rows_cuda(std::size_t row_bytes, std::int64_t n, const void* from, std::size_t from_apart, void* to,
                    std::size_t to_apart, Stream& stream) {
  with_word(
      row_bytes | from_apart | to_apart | reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to),
      [&]<class Word>(Word) {
        const auto words = static_cast<unsigned>(row_bytes / sizeof(Word)), across = std::min(32u, std::bit_ceil(words)),
                   rows = kThreads / across;
        cuda::launch_grid(copy_words<Word>, (n + rows - 1) / rows, 1, dim3(across, rows), 0, stream, n,
                          static_cast<int>(words), static_cast<const Word*>(from),
                          static_cast<std::int64_t>(from_apart / sizeof(Word)), static_cast<Word*>(to),
                          static_cast<std::int64_t>(to_apart / sizeof(Word)));
      });
}

}  // namespace

const VectorBackend cuda_vector_backend{dots, normalise_cuda, gather_cuda, copy_rows_cuda};

}  // namespace shardmat
