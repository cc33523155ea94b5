// The faults that check.cpp words and that are looked for on the host or, by check.cu, on a GPU.
#pragma once

#include <cstdint>

#include "kernels/batched/device_batch.h"
#include "kernels/batched/matrix_of.h"

#ifdef __CUDACC__
#define SHARDMAT_EVERYWHERE __host__ __device__
#else
#define SHARDMAT_EVERYWHERE
#endif

namespace shardmat::batched {

/// The arrays of a batch and where its matrices begin, in the memory of one device.
struct CheckedBatch {
  const std::int32_t *first_row, *first_col, *first_entry, *row_ptr, *row_idx, *col_idx;
  std::int32_t count;
};

/// The smallest wrong row and entry; `none` where there is none.
struct Faults {
  static constexpr std::int32_t none = 0x7fffffff;
  std::int32_t row = none;    ///< of the stacked Y, whose row pointers are wrong
  std::int32_t entry = none;  ///< of all, with an index outside its matrix
};

/// The row pointers of this row fall or leave its matrix's entries. REQUIRES: compressed rows.
SHARDMAT_EVERYWHERE inline bool wrong_row(const CheckedBatch& b, std::int32_t row) {
  const std::int32_t matrix = matrix_of(row, b.first_row, b.count), begin = b.row_ptr[row], end = b.row_ptr[row + 1];
  return begin > end || begin < b.first_entry[matrix] || end > b.first_entry[matrix + 1] ||
         (row == b.first_row[matrix] && begin != b.first_entry[matrix]) ||
         (row + 1 == b.first_row[matrix + 1] && end != b.first_entry[matrix + 1]);
}

SHARDMAT_EVERYWHERE inline bool wrong_entry(const CheckedBatch& b, std::int32_t entry) {
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
