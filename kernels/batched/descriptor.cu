#include "kernels/batched/descriptor.h"

#include <algorithm>
#include <cstring>

#include "kernels/batched/matrix_of.h"
#include "kernels/cuda/launch.h"

namespace shardmat {
namespace {

constexpr int kBlock = 256;

struct Words {
  std::int32_t of[batched::kWordsOfLaunch];
};

__device__ void fill_shift(const std::int32_t* words, const batched::RowShifts& s, std::int32_t* work, std::int64_t row) {
  if (row < s.rows)
    work[s.shifts + row] = words[s.first_col + batched::matrix_of(row, words + s.first_row, s.count)];
}

__global__ void fill_shifts(batched::RowShifts shifts, std::int32_t* work) {
  fill_shift(work, shifts, work, static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x);
}

__global__ void put_words(const __grid_constant__ Words words, int count, const __grid_constant__ batched::RowShifts shifts,
                          std::int32_t* work) {
  cuda::after_previous();  // which may still read what was there
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (i < count) work[i] = words.of[i];
  fill_shift(words.of, shifts, work, i);
}

}  // namespace

batched::RowShifts::RowShifts(std::vector<std::int32_t>& descriptor, const BatchOffsets& at)
    : count(static_cast<std::int32_t>(at.count())), rows(static_cast<std::int32_t>(at.rows())) {
  first_row = descriptor.size();
  descriptor.insert(descriptor.end(), at.first_row.begin(), at.first_row.end());
  first_col = descriptor.size();
  descriptor.insert(descriptor.end(), at.first_col.begin(), at.first_col.end());
  shifts = descriptor.size();
}

void cuda::place_descriptor(const std::vector<std::int32_t>& descriptor, const batched::RowShifts& shifts, void* work,
                            void* staging, Stream& stream) {
  auto* to = static_cast<std::int32_t*>(work);
  if (batched::travels_with_launch(descriptor.size())) {
    Words words;
    std::copy(descriptor.begin(), descriptor.end(), words.of);
    const std::int64_t threads = std::max<std::int64_t>(std::ssize(descriptor), shifts.rows);
    launch_grid_early(put_words, (threads + kBlock - 1) / kBlock, 1, dim3(kBlock), 0, stream, words,
                      static_cast<int>(descriptor.size()), shifts, to);
    return;
  }
  const std::size_t bytes = descriptor.size() * sizeof(std::int32_t);
  std::memcpy(staging, descriptor.data(), bytes);
  copy_to_device_async(work, staging, bytes, stream);
  launch(fill_shifts, shifts.rows, kBlock, stream, shifts, to);
}

}  // namespace shardmat
