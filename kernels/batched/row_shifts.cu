#include "kernels/batched/row_shifts.h"

#include "kernels/batched/matrix_of.h"
#include "kernels/cuda/launch.h"

namespace shardmat::batched {
namespace {

constexpr int kBlock = 256;

__global__ void fill_shifts(std::int32_t count, std::int32_t rows, const std::int32_t* __restrict__ first_row,
                            const std::int32_t* __restrict__ first_col, std::int32_t* __restrict__ shifts) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (row >= rows) return;
  shifts[row] = __ldg(first_col + matrix_of(row, first_row, count));
}

}  // namespace

std::size_t RowShifts::reserve(std::vector<std::int32_t>& descriptor, const BatchOffsets& at) {
  constexpr std::size_t kAligned = 4;  // entries of 16 bytes
  count_ = static_cast<std::int32_t>(at.count());
  rows_ = static_cast<std::int32_t>(at.rows());
  first_row_ = descriptor.size();
  descriptor.insert(descriptor.end(), at.first_row.begin(), at.first_row.end());
  first_col_ = descriptor.size();
  descriptor.insert(descriptor.end(), at.first_col.begin(), at.first_col.end());
  descriptor.resize((descriptor.size() + kAligned - 1) / kAligned * kAligned);
  shifts_ = descriptor.size();
  return (shifts_ + static_cast<std::size_t>(rows_)) * sizeof(std::int32_t);
}

void RowShifts::fill(void* work, Stream& stream) const {
  auto* entries = static_cast<std::int32_t*>(work);
  cuda::launch(fill_shifts, rows_, kBlock, stream, count_, rows_, entries + first_row_, entries + first_col_,
               entries + shifts_);
}

}  // namespace shardmat::batched
