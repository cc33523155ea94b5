// Transposes all matrices of a batch, for the products with Aᵀ in training. The result is made once for a batch and
// multiplied like any other batch.
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/batched/device_batch.h"

namespace shardmat {

/// Arrays for the transposed batch, in memory of the same device as the batch.
struct TransposedArrays {
  std::int32_t* row_ptr = nullptr;  ///< at.cols() + 1 entries
  std::int32_t* col_idx = nullptr;  ///< at.nnz() entries
  void* values = nullptr;           ///< at.nnz() entries of the batch's type
};

/// Device memory that transpose_into() needs besides its result.
std::size_t transpose_work_bytes(const DeviceBatch& batch);

/// Columns ascend in each row of the result; duplicates stay, in their order; the same batch gives the same result. In
/// stream order; on a GPU it does not allocate or wait. REQUIRES: a batch in compressed rows; `offsets`: at.first_row, then
/// at.first_col, in device memory; `work` is 256-byte aligned.
void transpose_into(const DeviceBatch& batch, const std::int32_t* offsets, const TransposedArrays& to, void* work,
                    Stream& stream);

/// The same, allocating its memory. Throws Error(usage) for a batch of coordinates.
std::shared_ptr<StoredBatch> transpose(const DeviceBatch& batch, Stream& stream);

}  // namespace shardmat
