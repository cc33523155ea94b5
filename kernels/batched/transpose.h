// The transposes of all matrices of a batch, for the products with Aᵀ that training makes: built once a batch, multiplied as
// any other.
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/batched/device_batch.h"

namespace shardmat {

/// Where a transposed batch goes, in memory of the device of the batch it is made from.
struct TransposedArrays {
  std::int32_t* row_ptr = nullptr;  ///< at.cols() + 1 entries
  std::int32_t* col_idx = nullptr;  ///< at.nnz() entries
  void* values = nullptr;           ///< at.nnz() entries of the batch's type
};

/// Device memory that transpose_into() needs beside its result.
std::size_t transpose_work_bytes(const DeviceBatch& batch);

/// Columns ascend in each row of the result; duplicates stay, in their order; the same batch gives the same result. In
/// stream order; on a GPU nothing is allocated or waited for. REQUIRES: a batch in compressed rows, `offsets` the batch's
/// own at.first_row and at.first_col one behind the other in memory of the device, `work` 256-byte aligned.
void transpose_into(const DeviceBatch& batch, const std::int32_t* offsets, const TransposedArrays& to, void* work,
                    Stream& stream);

/// The same with memory of its own. Throws Error(usage) for a batch of coordinates.
std::shared_ptr<StoredBatch> transpose(const DeviceBatch& batch, Stream& stream);

}  // namespace shardmat
