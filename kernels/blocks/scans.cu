#include "kernels/blocks/scans.h"

#include <bit>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "kernels/cuda/cub_scratch.h"
#include "kernels/cuda/launch.h"

namespace shardmat::blocks {
namespace {

__global__ void number_items(std::int64_t count, std::int32_t* items) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) items[i] = static_cast<std::int32_t>(i);
}

template <class Key>
void sort(const Key* keys, std::int64_t count, std::uint64_t most, Key* sorted_keys, std::int32_t* items, Stream& stream) {
  const Buffer numbers = array<std::int32_t>(count, stream);
  cuda::launch(number_items, count, 256, stream, count, numbers.as<std::int32_t>());
  cuda::with_scratch(stream, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, sorted_keys, numbers.as<std::int32_t>(), items, count, 0,
                                           static_cast<int>(std::bit_width(most)), stream.native());
  });
}

}  // namespace

std::int64_t sum_before(std::int64_t* counts, std::int64_t count, Stream& stream) {
  fill_bytes(counts + count, 0, sizeof(std::int64_t), stream);
  cuda::with_scratch(stream, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(scratch, bytes, counts, counts, count + 1, stream.native());
  });
  std::int64_t sum = 0;
  copy_to_host(&sum, counts + count, sizeof sum, stream);
  return sum;
}

void sort_by_key(const std::int32_t* keys, std::int64_t count, std::int64_t most, std::int32_t* sorted_keys,
                 std::int32_t* items, Stream& stream) {
  sort(keys, count, static_cast<std::uint64_t>(most), sorted_keys, items, stream);
}
void sort_by_key(const std::uint64_t* keys, std::int64_t count, std::uint64_t most, std::uint64_t* sorted_keys,
                 std::int32_t* items, Stream& stream) {
  sort(keys, count, most, sorted_keys, items, stream);
}

}  // namespace shardmat::blocks
