#include "kernels/batched/check_faults.h"
#include "kernels/cuda/launch.h"
#include "kernels/formats/upload.h"

namespace shardmat::cuda {
namespace {

constexpr int kBlock = 256;

__global__ void look(batched::CheckedBatch b, std::int32_t rows, std::int32_t entries, batched::Faults* faults) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (b.row_ptr != nullptr && i < rows && wrong_row(b, static_cast<std::int32_t>(i)))
    atomicMin(&faults->row, static_cast<std::int32_t>(i));
  if (i < entries && wrong_entry(b, static_cast<std::int32_t>(i))) atomicMin(&faults->entry, static_cast<std::int32_t>(i));
}

}  // namespace

batched::Faults find_faults(const DeviceBatch& batch, Stream& stream) {
  const BatchOffsets& at = batch.at;
  const Buffer rows = upload(at.first_row, stream), cols = upload(at.first_col, stream),
               entries = upload(at.first_entry, stream);
  const Buffer found = upload(std::vector<batched::Faults>(1), stream);
  const batched::CheckedBatch b{
      rows.as<std::int32_t>(), cols.as<std::int32_t>(), entries.as<std::int32_t>(),           batch.row_ptr,
      batch.row_idx,           batch.col_idx,           static_cast<std::int32_t>(at.count())};
  launch(look, std::max(at.rows(), at.nnz()), kBlock, stream, b, static_cast<std::int32_t>(at.rows()),
         static_cast<std::int32_t>(at.nnz()), found.as<batched::Faults>());
  return download<batched::Faults>(found, stream).front();
}

}  // namespace shardmat::cuda
