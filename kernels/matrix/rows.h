// Access to the rows of a CSR view by offsets that start at 0; offsets from counts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/matrix/csr.h"

namespace shardmat {

/// Row i has the nonzeros begin(i) … end(i) - 1. The matrix may have no rows.
class Rows {
 public:
  explicit Rows(const CsrView& matrix) : matrix_(matrix), origin_(matrix.rows == 0 ? 0 : matrix.row_ptr[0]) {}
  std::int64_t count() const { return matrix_.rows; }
  std::int64_t begin(std::int64_t row) const { return matrix_.row_ptr[static_cast<std::size_t>(row)] - origin_; }
  std::int64_t end(std::int64_t row) const { return begin(row + 1); }
  std::int64_t length(std::int64_t row) const { return end(row) - begin(row); }
  std::int64_t column(std::int64_t k) const { return matrix_.col_idx[static_cast<std::size_t>(k)]; }
  ColumnPointer columns() const { return matrix_.col_idx.data(); }
  ValuePointer values() const { return matrix_.values.data(); }

 private:
  CsrView matrix_;
  std::int64_t origin_;
};

/// Replaces counts in offsets[1], offsets[2] … by offsets; offsets[0] becomes 0.
inline void accumulate_offsets(HostVector<std::int64_t>& offsets) {
  offsets[0] = 0;
  for (std::size_t i = 1; i < offsets.size(); ++i) offsets[i] += offsets[i - 1];
}

}  // namespace shardmat
