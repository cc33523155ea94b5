// How well the columns that a product reads one after another share lines of x (paper: Tomimori, Tanabe, Takata, Joe,
// "spatial locality of the column index sequence"). It is what a cache of one line would see: it ignores reuse over time.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/base/types.h"
#include "kernels/matrix/csr.h"

namespace shardmat {

/// Entries of x in a line of 128 bytes as bits of the column: 5 for f32 (the paper's), 4 for f64.
constexpr int line_bits(ValueType type) { return type == ValueType::f32 ? 5 : 4; }

/// The columns are read in storage order; consecutive ones that agree in all but their `low_bits` lowest bits are counted,
/// and at each change, as at the end, the count is emitted and starts again at 1. Returns the mean of the emitted counts:
/// from 1, each entry in another line than the one before it; 0 without entries. Padding is read like any other entry.
double column_locality(std::span<const std::int32_t> columns, int low_bits);
double column_locality(std::span<const std::int64_t> columns, int low_bits);
double column_locality(const CsrView& matrix, int low_bits);
/// The same with the rows stored in another order: row_order[new_row] = old_row, a permutation.
double column_locality(const CsrView& matrix, int low_bits, std::span<const std::int64_t> row_order);

/// The same in the order of the Fold method: rows cut into pieces of `width` nonzeros, and of all pieces, one after another,
/// the first nonzero, then the second …; what pads the last piece of a row is not read, as in the paper's "padding removed".
/// Throws Error(usage) for a width below 1.
double folded_column_locality(const CsrView& matrix, int low_bits, std::int64_t width);
/// The same in the order of row block packing: of each row the nonzeros inside runs (runs.h), then the others.
double rbp_column_locality(const CsrView& matrix, int low_bits);
/// The mean length of the rows that are not empty, rounded up; at least 1.
std::int64_t usual_fold_width(const CsrView& matrix);

/// The same of columns that come in pieces, in storage order.
class ColumnLocality {
 public:
  explicit ColumnLocality(int low_bits) : low_bits_(low_bits) {}
  void add(std::span<const std::int64_t> columns);
  double mean() const;

 private:
  int low_bits_;
  std::int64_t entries_ = 0, changes_ = 0, last_ = 0;
};

}  // namespace shardmat
