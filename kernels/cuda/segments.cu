#include "kernels/cuda/segments.h"

#include <thrust/iterator/counting_iterator.h>

#include <cub/device/device_select.cuh>

#include "kernels/cuda/launch.h"

namespace shardmat::cuda {
namespace {

template <class Offset, bool kWanted>
struct EmptyIs {
  const Offset* row_ptr;
  __device__ bool operator()(std::int32_t row) const { return (row_ptr[row] == row_ptr[row + 1]) == kWanted; }
};

/// The rows that are empty (or are not), ascending.
template <class Offset, bool kEmpty>
std::int64_t select_rows(const CsrStorage& a, Buffer& rows, Stream& stream) {
  const DeviceGuard guard(stream.device());
  const thrust::counting_iterator<std::int32_t> all(0);
  const EmptyIs<Offset, kEmpty> wanted{a.row_ptr.as<Offset>()};
  const auto count = static_cast<int>(a.rows);
  const Buffer found(a.device, sizeof(std::int32_t));
  std::size_t bytes = 0;
  Buffer selected(a.device, static_cast<std::size_t>(a.rows) * sizeof(std::int32_t));
  SHARDMAT_CUDA_CHECK(cub::DeviceSelect::If(nullptr, bytes, all, selected.as<std::int32_t>(), found.as<std::int32_t>(),
                                            count, wanted, stream.native()));
  const Buffer workspace(a.device, bytes + 1);
  SHARDMAT_CUDA_CHECK(cub::DeviceSelect::If(workspace.data(), bytes, all, selected.as<std::int32_t>(),
                                            found.as<std::int32_t>(), count, wanted, stream.native()));
  std::int32_t length = 0;
  copy_to_host(&length, found.data(), sizeof(length), stream);
  rows = Buffer(a.device, static_cast<std::size_t>(length) * sizeof(std::int32_t));
  copy_on_device(rows.data(), selected.data(), rows.bytes(), stream);
  stream.synchronize();
  return length;
}

template <class Offset>
__global__ void flag_rows(std::int64_t row_count, const std::int32_t* __restrict__ rows, const Offset* __restrict__ row_ptr,
                          unsigned* __restrict__ flags) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= row_count) return;
  const std::int64_t k = row_ptr[rows[i]];
  atomicOr(flags + k / 32, 1u << (k % 32));
}

template <class Offset>
__global__ void count_begun(std::int64_t row_count, const std::int32_t* __restrict__ rows,
                            const Offset* __restrict__ row_ptr, std::int64_t chunk_items, std::int64_t chunks,
                            std::int32_t* __restrict__ begun) {
  const std::int64_t chunk = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (chunk > chunks) return;
  std::int64_t low = 0, high = row_count;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (row_ptr[rows[middle]] < chunk * chunk_items) low = middle + 1;
    else high = middle;
  }
  begun[chunk] = static_cast<std::int32_t>(low);
}

/// The row open at the beginning of each chunk is finished there if another begins in it or there is no more chunk. If it
/// has no nonzero in that chunk, its end is the tail of the chunk before.
template <class Offset>
__global__ void find_split_rows(const std::int32_t* __restrict__ rows, const Offset* __restrict__ row_ptr,
                                std::int64_t chunk_items, std::int64_t chunks, const std::int32_t* __restrict__ begun,
                                SplitRow* __restrict__ split) {
  const std::int64_t chunk = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (chunk > chunks) return;
  const bool finishes = chunk > 0 && (chunk == chunks || begun[chunk + 1] > begun[chunk]);
  const std::int64_t row = finishes ? rows[begun[chunk] - 1] : -1;
  const std::int64_t begins_in = finishes ? static_cast<std::int64_t>(row_ptr[row]) / chunk_items : 0;
  const bool ended = finishes && (chunk == chunks || row_ptr[row + 1] == chunk * chunk_items);
  split[chunk] = {row, ended ? ~begins_in : begins_in};
}

template <class Offset>
Segments find(const CsrStorage& a, int items, int steps, int columns, Stream& stream) {
  const std::int64_t step = std::int64_t{32} * items, chunk = step * steps;
  const auto* row_ptr = a.row_ptr.as<Offset>();
  Segments all;
  all.chunks = (a.nnz + chunk - 1) / chunk;
  const std::int64_t row_count = select_rows<Offset, false>(a, all.rows, stream);
  all.empty_count = select_rows<Offset, true>(a, all.empty, stream);
  all.flags = Buffer(a.device, static_cast<std::size_t>((a.nnz + step - 1) / step * step / 8));
  fill_bytes(all.flags.data(), 0, all.flags.bytes(), stream);
  all.begun = Buffer(a.device, static_cast<std::size_t>(all.chunks + 1) * sizeof(std::int32_t));
  all.split = SplitRows(a.device, all.chunks + 1, a.type, columns);
  fill_bytes(all.split.head.data(), 0, all.split.head.bytes(), stream);  // no chunk writes the last
  const auto* rows = all.rows.as<std::int32_t>();
  launch(flag_rows<Offset>, row_count, 256, stream, row_count, rows, row_ptr, all.flags.as<unsigned>());
  launch(count_begun<Offset>, all.chunks + 1, 256, stream, row_count, rows, row_ptr, chunk, all.chunks,
         all.begun.as<std::int32_t>());
  launch(find_split_rows<Offset>, all.chunks + 1, 256, stream, rows, row_ptr, chunk, all.chunks,
         all.begun.as<std::int32_t>(), all.split.rows.as<SplitRow>());
  return all;
}

}  // namespace

Segments find_segments(const CsrStorage& a, int items, int steps, int columns, Stream& stream) {
  if (a.rows == 0) return {};
  return a.wide_offsets ? find<std::int64_t>(a, items, steps, columns, stream)
                        : find<std::int32_t>(a, items, steps, columns, stream);
}

}  // namespace shardmat::cuda
