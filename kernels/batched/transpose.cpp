#include "kernels/batched/transpose.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/batched/transpose_cuda.h"

namespace shardmat {
namespace {

void transpose_on_host(const DeviceBatch& batch, const TransposedArrays& to) {
  const BatchOffsets& at = batch.at;
  std::fill_n(to.row_ptr, at.cols() + 1, 0);
  const auto visit = [&](const auto& use) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(at.count()); ++i)
      for (std::int32_t row = at.first_row[i]; row < at.first_row[i + 1]; ++row)
        for (std::int32_t k = batch.row_ptr[row]; k < batch.row_ptr[row + 1]; ++k)
          use(at.first_col[i] + batch.col_idx[k], row - at.first_row[i], k);
  };
  visit([&](std::int32_t col, std::int32_t, std::int32_t) { ++to.row_ptr[col + 1]; });
  for (std::int64_t col = 0; col < at.cols(); ++col) to.row_ptr[col + 1] += to.row_ptr[col];
  std::vector<std::int32_t> next(to.row_ptr, to.row_ptr + at.cols());
  dispatch_operands(batch.type, [&](auto of_a, auto) {
    using A = typename decltype(of_a)::type;
    visit([&](std::int32_t col, std::int32_t row, std::int32_t k) {
      const std::int32_t place = next[static_cast<std::size_t>(col)]++;
      to.col_idx[place] = row;
      static_cast<A*>(to.values)[place] = static_cast<const A*>(batch.values)[k];
    });
  });
}

}  // namespace

std::size_t transpose_work_bytes(const DeviceBatch& batch) {
  return batch.device.backend == Backend::cuda ? cuda::transpose_work_bytes(batch) : 0;
}

void transpose_into(const DeviceBatch& batch, const std::int32_t* offsets, const TransposedArrays& to, void* work,
                    Stream& stream) {
  if (batch.format != BatchFormat::csr)
    throw Error(ErrorKind::usage,
                "only batches in compressed rows are transposed; swap the rows and columns of coordinates");
  if (batch.device.backend == Backend::cuda) cuda::transpose_into(batch, offsets, to, work, stream);
  else transpose_on_host(batch, to);
}

std::shared_ptr<StoredBatch> transpose(const DeviceBatch& batch, Stream& stream) {
  auto result = std::make_shared<StoredBatch>();
  result->device = batch.device;
  result->type = batch.type;
  result->at = batch.at;
  std::swap(result->at.first_row, result->at.first_col);
  std::swap(result->at.most_rows, result->at.most_cols);
  const auto bytes_of = [](std::int64_t count, std::size_t size) { return aligned(static_cast<std::size_t>(count) * size); };
  const std::size_t rows = bytes_of(batch.at.cols() + 1, sizeof(std::int32_t));
  const std::size_t cols = bytes_of(batch.at.nnz(), sizeof(std::int32_t));
  const std::size_t work = transpose_work_bytes(batch), values = bytes_of(batch.at.nnz(), size_of(batch.type));
  require_memory(batch.device, static_cast<std::int64_t>(rows + cols + values + work), "the transposed batch");
  result->memory = Buffer(batch.device, rows + cols + values);
  auto* base = result->memory.as<std::byte>();
  const TransposedArrays to{reinterpret_cast<std::int32_t*>(base), reinterpret_cast<std::int32_t*>(base + rows),
                            base + rows + cols};
  result->row_ptr = to.row_ptr;
  result->col_idx = to.col_idx;
  result->values = to.values;
  std::vector<std::int32_t> offsets = batch.at.first_row;
  offsets.insert(offsets.end(), batch.at.first_col.begin(), batch.at.first_col.end());
  const Buffer on_device(batch.device, offsets.size() * sizeof(std::int32_t)), space(batch.device, work);
  copy_to_device(on_device.data(), offsets.data(), on_device.bytes(), stream);
  transpose_into(batch, on_device.as<std::int32_t>(), to, space.data(), stream);
  stream.synchronize();
  return result;
}

}  // namespace shardmat
