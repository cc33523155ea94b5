// A thread has a row: it reads each vector next to its neighbours, and writes its row of the matrix, or the other way round.
#include <algorithm>

#include "kernels/column_packing_backends.h"
#include "kernels/cuda/launch.h"

namespace shardmat {
namespace {

constexpr int kPackingThreads = 256;
constexpr std::size_t kPackedAtATime = 32;  ///< whose addresses fit into the parameters of a kernel

template <class T>
struct PackedVectors {
  const T* of[kPackedAtATime];
};

template <class T>
__global__ void pack_vectors(std::int64_t n, int count, PackedVectors<T> vectors, T* to, std::int64_t width) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  for (int j = 0; j < count; ++j)
    if (vectors.of[j] != nullptr) to[i * width + j] = vectors.of[j][i];
}

template <class T>
struct UnpackedResults {
  T* y[kPackedAtATime];
  T alpha[kPackedAtATime], beta[kPackedAtATime];
};

template <class T>
__global__ void unpack_sums(std::int64_t n, int count, const T* sums, std::int64_t width, UnpackedResults<T> results) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  for (int j = 0; j < count; ++j) {
    T* const y = results.y[j];
    if (y == nullptr) continue;
    const T product = results.alpha[j] * sums[i * width + j], beta = results.beta[j];
    y[i] = beta == T(0) ? product : fma(beta, y[i], product);  // as kernels of products, in which the compiler fuses
  }
}

}  // namespace

void pack_columns_cuda(ValueType type, std::int64_t n, std::span<const void* const> vectors, void* to, std::int64_t width,
                       Stream& stream) {
  dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (std::size_t first = 0; first < vectors.size(); first += kPackedAtATime) {
      const std::size_t count = std::min(kPackedAtATime, vectors.size() - first);
      PackedVectors<T> some{};
      for (std::size_t j = 0; j < count; ++j) some.of[j] = static_cast<const T*>(vectors[first + j]);
      cuda::launch(pack_vectors<T>, n, kPackingThreads, stream, n, static_cast<int>(count), some,
                   static_cast<T*>(to) + first, width);
    }
  });
}

void unpack_columns_cuda(ValueType type, std::int64_t n, const void* sums, std::int64_t width,
                         std::span<const UnpackedColumn> columns, Stream& stream) {
  dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (std::size_t first = 0; first < columns.size(); first += kPackedAtATime) {
      const std::size_t count = std::min(kPackedAtATime, columns.size() - first);
      UnpackedResults<T> some{};
      for (std::size_t j = 0; j < count; ++j) {
        const UnpackedColumn& column = columns[first + j];
        some.y[j] = static_cast<T*>(column.y);
        some.alpha[j] = static_cast<T>(column.alpha), some.beta[j] = static_cast<T>(column.beta);
      }
      cuda::launch(unpack_sums<T>, n, kPackingThreads, stream, n, static_cast<int>(count),
                   static_cast<const T*>(sums) + first, width, some);
    }
  });
}

}  // namespace shardmat
