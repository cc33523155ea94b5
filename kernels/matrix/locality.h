// How often consecutive columns that a product reads lie in the same cache line of x (paper: Tomimori, Tanabe, Takata, Joe,
// "spatial locality of the column index sequence"). This is the reuse in a cache of one line; later reuse does not count.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/base/types.h"
#include "kernels/matrix/csr.h"

namespace shardmat {

/// log2 of the entries of x in a line of 128 bytes: 5 for f32 (as in the paper), 4 for f64.
constexpr int line_bits(ValueType type) { return type == ValueType::f32 ? 5 : 4; }

/// Cuts the columns, in storage order, into runs of consecutive columns that agree in all but their `low_bits` lowest bits.
/// Returns the mean length of these runs: 1 if each entry lies in another line than its predecessor; 0 without entries.
/// Padding counts like any other entry.
double column_locality(std::span<const std::int32_t> columns, int low_bits);
double column_locality(std::span<const std::int64_t> columns, int low_bits);
double column_locality(const CsrView& matrix, int low_bits);
/// The same with the rows stored in another order: row_order[new_row] = old_row, a permutation.
double column_locality(const CsrView& matrix, int low_bits, std::span<const std::int64_t> row_order);

/// What Fold pads the last piece of a row with: not counted ("padding removed" in the paper), or reads of column 0.
enum class FoldPadding { removed, counted };
/// The same in the order of the Fold method: rows are cut into pieces of `width` nonzeros; then come the first nonzeros of
/// all pieces, then all second nonzeros …. Throws Error(usage) for a width below 1.
double folded_column_locality(const CsrView& matrix, int low_bits, std::int64_t width,
                              FoldPadding padding = FoldPadding::removed);
/// The same in the order of row block packing: in each row the nonzeros inside runs (runs.h), then all others.
double rbp_column_locality(const CsrView& matrix, int low_bits);
/// The mean length of the rows that are not empty, rounded up; at least 1.
std::int64_t usual_fold_width(const CsrView& matrix);

/// The orders in which a product can read the columns, as the paper compares them.
enum class ReadOrder { stored, sorted, folded };
/// "CRS", "sorted CRS", "Fold".
std::string_view name(ReadOrder order);
/// The order with the largest locality, Fold's without padding; CRS if it is within 5 % of the largest, since it needs no
/// conversion.
ReadOrder advised_order(double stored, double sorted, double folded);

/// column_locality() of columns that are given in several calls, in storage order.
class ColumnLocality {
 public:
  explicit ColumnLocality(int low_bits) : low_bits_(low_bits) {}
  void add(const ColumnView& columns);
  double mean() const;

 private:
  int low_bits_;
  std::int64_t entries_ = 0, changes_ = 0, last_ = 0;
};

}  // namespace shardmat
