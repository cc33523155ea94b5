// Finds faults in a batch, on the host or on a GPU (check.cu); check.cpp makes the messages.
#pragma once

#include <cstdint>

#include "kernels/base/host_device.h"
#include "kernels/batched/device_batch.h"
#include "kernels/batched/matrix_of.h"

namespace shardmat::batched {

/// The arrays and offsets of a batch, in the memory of one device.
struct CheckedBatch {
  const std::int32_t *first_row, *first_col, *first_entry, *row_ptr, *row_idx, *col_idx;
  std::int32_t count;
};

/// The first wrong row and the first wrong entry, or `none`.
struct Faults {
  static constexpr std::int32_t none = 0x7fffffff;
  std::int32_t row = none;    ///< row of the stacked Y with wrong row pointers
  std::int32_t entry = none;  ///< entry of the batch with an index outside its matrix
};

/// True if the row pointers of this row decrease or leave its matrix's entries. REQUIRES: compressed rows.
SHARDMAT_HOST_DEVICE inline bool wrong_row(const CheckedBatch& b, std::int32_t row) {
  const std::int32_t matrix = matrix_of(row, b.first_row, b.count), begin = b.row_ptr[row], end = b.row_ptr[row + 1];
  return begin > end || begin < b.first_entry[matrix] || end > b.first_entry[matrix + 1] ||
         (row == b.first_row[matrix] && begin != b.first_entry[matrix]) ||
         (row + 1 == b.first_row[matrix + 1] && end != b.first_entry[matrix + 1]);
}

SHARDMAT_HOST_DEVICE inline bool wrong_entry(const CheckedBatch& b, std::int32_t entry) {
  const std::int32_t matrix = matrix_of(entry, b.first_entry, b.count);
  const auto outside = [](std::int32_t index, const std::int32_t* first) {
    return index < 0 || index >= first[1] - first[0];
  };
  return outside(b.col_idx[entry], b.first_col + matrix) ||
         (b.row_idx != nullptr && outside(b.row_idx[entry], b.first_row + matrix));
}

}  // namespace shardmat::batched

namespace shardmat::cuda {

#ifdef SHARDMAT_HAVE_CUDA
batched::Faults find_faults(const DeviceBatch& batch, Stream& stream);
#else
inline batched::Faults find_faults(const DeviceBatch&, Stream&) { return {}; }
#endif

}  // namespace shardmat::cuda
