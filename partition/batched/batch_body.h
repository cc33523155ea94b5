// A batch that lies in one block of memory (batch_shape.h) and comes from somebody else: nothing in it is trusted.
//
// Threads: any thread; there is no shared state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "kernels/base/host_vector.h"
#include "kernels/batched/batch.h"
#include "partition/batched/batch_shape.h"

namespace shardmat {

class BatchBody {
 public:
  /// REQUIRES: `bytes` has shape.bytes() bytes, begins at a multiple of 8, and outlives this object.
  BatchBody(const BatchShape& shape, std::span<const std::byte> bytes);

  const BatchShape& shape() const { return shape_; }
  const std::byte* x() const { return bytes_ + shape_.x(); }

  /// What is wrong with the offsets of the matrices, or nothing. The entries between them are not looked at.
  std::string fault_of_offsets() const;

  // REQUIRES, of what follows: there is no fault of offsets.

  /// Entries and rows of one matrix, as the time of its product; of all.
  std::int64_t weight(std::int64_t matrix) const;
  std::int64_t weight() const { return shape_.nnz + shape_.rows; }
  /// Of matrices [begin, end).
  struct Sizes {
    std::int64_t count = 0, rows = 0, cols = 0, nnz = 0;
  };
  Sizes sizes(std::int64_t begin, std::int64_t end) const;
  /// Matrices [begin, end), to be validated. Takes memory for their values, 8 bytes each.
  BatchView view(std::int64_t begin, std::int64_t end, HostVector<double>& values) const;

 private:
  BatchShape shape_;
  const std::byte* bytes_;
  std::span<const std::int64_t> first_row_, first_col_, row_ptr_;
  std::span<const std::int32_t> col_idx_;
};

}  // namespace shardmat
