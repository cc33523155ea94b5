#include "kernels/batched/descriptor.h"

#include <algorithm>
#include <cstring>

#include "kernels/cuda/launch.h"

namespace shardmat {
namespace {

constexpr int kBlock = 256;

using Words = batched::Descriptor<batched::kWordsOfLaunch>;

/// Entry `row` of the list, if there is one.
__device__ void fill_shift(const std::int32_t* words, const batched::RowShifts& shifts, std::int32_t listed,
                           std::int32_t* work, std::int64_t row) {
  if (row < listed) const_cast<std::int32_t*>(shifts.of(work))[row] = shifts.look_up(words, static_cast<std::int32_t>(row));
}

__global__ void fill_shifts(batched::RowShifts shifts, std::int32_t listed, std::int32_t* work) {
  fill_shift(work, shifts, listed, work, static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x);
}

__global__ void put_words(const __grid_constant__ Words words, int count, const __grid_constant__ batched::RowShifts shifts,
                          std::int32_t listed, std::int32_t* work) {
  cuda::after_previous();  // which may still read what was there
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (i < count) work[i] = words.of[i];
  fill_shift(words.of, shifts, listed, work, i);
}

}  // namespace

void cuda::place_descriptor(const std::vector<std::int32_t>& descriptor, const batched::RowShifts& shifts, void* work,
                            void* staging, Stream& stream) {
  auto* to = static_cast<std::int32_t*>(work);
  if (batched::travels_with_launch(descriptor.size())) {
    const Words words(descriptor);
    const std::int64_t threads = std::max<std::int64_t>(std::ssize(descriptor), shifts.listed());
    launch_grid_early(put_words, (threads + kBlock - 1) / kBlock, 1, dim3(kBlock), 0, stream, words,
                      static_cast<int>(descriptor.size()), shifts, shifts.listed(), to);
    return;
  }
  const std::size_t bytes = descriptor.size() * sizeof(std::int32_t);
  std::memcpy(staging, descriptor.data(), bytes);
  copy_to_device_async(work, staging, bytes, stream);
  launch(fill_shifts, shifts.listed(), kBlock, stream, shifts, shifts.listed(), to);
}

}  // namespace shardmat
