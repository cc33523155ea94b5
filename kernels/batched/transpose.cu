// Entries sorted by their row of the stacked X, stably, so that those of a row of the transpose keep ascending columns.
#include <cub/device/device_radix_sort.cuh>

#include "kernels/batched/matrix_of.h"
#include "kernels/batched/transpose_cuda.h"
#include "kernels/cuda/launch.h"

namespace shardmat::cuda {
namespace {

constexpr int kBlock = 256;

/// Each of the four lists has an entry a nonzero: by which row of X, before and after sorting, and which nonzero.
struct Work {
  std::int32_t *keys, *sorted_keys, *places, *sorted_places, *row_of;
  void* temporary;
  std::size_t temporary_bytes, bytes;

  Work(void* memory, const BatchOffsets& at) {
    const std::size_t list = aligned(static_cast<std::size_t>(at.nnz()) * sizeof(std::int32_t));
    auto* base = static_cast<char*>(memory);
    const auto take = [&](std::size_t i) { return reinterpret_cast<std::int32_t*>(base + i * list); };
    keys = take(0), sorted_keys = take(1), places = take(2), sorted_places = take(3), row_of = take(4);
    temporary = base + 5 * list;
    temporary_bytes = 0;
    sort(nullptr, at, nullptr);
    bytes = 5 * list + aligned(temporary_bytes);
  }
  /// With no memory, finds out how much it takes.
  void sort(void* memory, const BatchOffsets& at, cudaStream_t stream) {
    int bits = 1;
    while (bits < 31 && (std::int64_t{1} << bits) < at.cols()) ++bits;
    SHARDMAT_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(memory, temporary_bytes, keys, sorted_keys, places, sorted_places,
                                                        static_cast<int>(at.nnz()), 0, bits, stream));
  }
};

__global__ void list_entries(std::int32_t rows, std::int32_t count, const std::int32_t* __restrict__ offsets,
                             const std::int32_t* __restrict__ row_ptr, const std::int32_t* __restrict__ col_idx, Work to) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (row >= rows) return;
  const std::int32_t matrix = batched::matrix_of(row, offsets, count), first_col = __ldg(offsets + count + 1 + matrix);
  for (std::int32_t k = __ldg(row_ptr + row); k < __ldg(row_ptr + row + 1); ++k) {
    to.keys[k] = first_col + __ldg(col_idx + k);
    to.places[k] = k;
    to.row_of[k] = static_cast<std::int32_t>(row) - __ldg(offsets + matrix);
  }
}

template <class A>
__global__ void put_entries(std::int64_t nnz, Work from, const A* __restrict__ values, std::int32_t* __restrict__ col_idx,
                            A* __restrict__ to) {
  const std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (k >= nnz) return;
  const std::int32_t place = __ldg(from.sorted_places + k);
  col_idx[k] = __ldg(from.row_of + place);
  to[k] = values[place];
}

/// Each row begins with the first sorted key that is not smaller.
__global__ void find_rows(std::int64_t rows, std::int32_t nnz, const std::int32_t* __restrict__ keys,
                          std::int32_t* __restrict__ row_ptr) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (row > rows) return;
  std::int32_t first = 0, length = nnz;
  while (length > 0) {
    const std::int32_t half = length / 2;
    if (__ldg(keys + first + half) < row) first += half + 1, length -= half + 1;
    else length = half;
  }
  row_ptr[row] = first;
}

}  // namespace

std::size_t transpose_work_bytes(const DeviceBatch& batch) {
  const DeviceGuard guard(batch.device);
  return Work(nullptr, batch.at).bytes;
}

void transpose_into(const DeviceBatch& batch, const std::int32_t* offsets, const TransposedArrays& to, void* memory,
                    Stream& stream) {
  const DeviceGuard guard(batch.device);
  const BatchOffsets& at = batch.at;
  Work work(memory, at);
  launch(list_entries, at.rows(), kBlock, stream, static_cast<std::int32_t>(at.rows()),
         static_cast<std::int32_t>(at.count()), offsets, batch.row_ptr, batch.col_idx, work);
  if (at.nnz() > 0) work.sort(work.temporary, at, stream.native());
  launch(find_rows, at.cols() + 1, kBlock, stream, at.cols(), static_cast<std::int32_t>(at.nnz()), work.sorted_keys,
         to.row_ptr);
  dispatch_operands(batch.type, [&](auto of_a, auto) {
    using A = typename decltype(of_a)::type;
    launch(put_entries<A>, at.nnz(), kBlock, stream, at.nnz(), work, static_cast<const A*>(batch.values), to.col_idx,
           static_cast<A*>(to.values));
  });
}

}  // namespace shardmat::cuda
