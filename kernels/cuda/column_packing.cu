// A warp has 32 rows, which pass through shared memory: it reads and writes neighbours of the vectors, and of the rows.
#include <algorithm>

#include "kernels/column_packing_backends.h"
#include "kernels/cuda/launch.h"

namespace shardmat {
namespace {

constexpr int kWarp = 32, kWarpsOfABlock = 4;
constexpr int kPackingThreads = kWarpsOfABlock * kWarp;
constexpr int kPackedAtATime = 32;  ///< columns, whose addresses fit into the parameters of a kernel
constexpr int kAtOnce = 8;          ///< loads of a thread under way

/// Rows of a warp. A further column keeps the banks of a column apart.
template <class T>
using Tile = T[kWarp][kPackedAtATime + 1];

template <class T>
struct PackedVectors {
  const T* of[kPackedAtATime];
  unsigned present;  ///< a bit for each that is not null
};

template <class T>
__global__ void __launch_bounds__(kPackingThreads)
    pack_vectors(std::int64_t n, int count, PackedVectors<T> vectors, T* to, std::int64_t width) {
  __shared__ Tile<T> tiles[kWarpsOfABlock];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  Tile<T>& tile = tiles[warp];
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kWarpsOfABlock + warp) * kWarp;
  if (first >= n) return;
  const int rows = n - first < kWarp ? static_cast<int>(n - first) : kWarp;
#pragma unroll kAtOnce
  for (int j = 0; j < count; ++j)
    if (lane < rows && (vectors.present >> j & 1) != 0) tile[lane][j] = vectors.of[j][first + lane];
  __syncwarp();
  T* const block = to + first * width;
  for (int e = lane; e < rows * count; e += kWarp) {
    const int i = e / count, j = e % count;
    if ((vectors.present >> j & 1) != 0) block[i * width + j] = tile[i][j];
  }
}

template <class T>
struct UnpackedResults {
  T* y[kPackedAtATime];
  T alpha[kPackedAtATime], beta[kPackedAtATime];
};

template <class T>
__global__ void __launch_bounds__(kPackingThreads)
    unpack_sums(std::int64_t n, int count, const T* sums, std::int64_t width, UnpackedResults<T> results) {
  __shared__ Tile<T> tiles[kWarpsOfABlock];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  Tile<T>& tile = tiles[warp];
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kWarpsOfABlock + warp) * kWarp;
  if (first >= n) return;
  const int rows = n - first < kWarp ? static_cast<int>(n - first) : kWarp;
  const T* const block = sums + first * width;
#pragma unroll kAtOnce
  for (int e = lane; e < rows * count; e += kWarp) tile[e / count][e % count] = block[e / count * width + e % count];
  __syncwarp();
  if (lane >= rows) return;
  for (int j = 0; j < count; ++j) {
    T* const y = results.y[j];
    if (y == nullptr) continue;
    const T alpha = results.alpha[j], beta = results.beta[j];
    const T product = alpha == T(0) ? T(0) : alpha * tile[lane][j];
    T& to = y[first + lane];
    to = beta == T(0) ? product : fma(beta, to, product);  // as kernels of products, in which the compiler fuses
  }
}

}  // namespace

void pack_columns_cuda(ValueType type, std::int64_t n, std::span<const void* const> vectors, void* to, std::int64_t width,
                       Stream& stream) {
  dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (std::size_t first = 0; first < vectors.size(); first += kPackedAtATime) {
      const std::size_t count = std::min<std::size_t>(kPackedAtATime, vectors.size() - first);
      PackedVectors<T> some{};
      for (std::size_t j = 0; j < count; ++j) {
        some.of[j] = static_cast<const T*>(vectors[first + j]);
        if (some.of[j] != nullptr) some.present |= 1u << j;
      }
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
      const std::size_t count = std::min<std::size_t>(kPackedAtATime, columns.size() - first);
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
