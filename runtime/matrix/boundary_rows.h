// Boundary rows of a part need entries of x that other ranks own. Interior rows can be multiplied while x moves.
#pragma once

#include <cstdint>

#include "kernels/base/host_vector.h"
#include "kernels/matrix/compact_csr.h"

namespace shardmat {

struct BoundaryRows {
  HostVector<std::uint8_t> of_row;  ///< 1 for a boundary row, 0 for an interior row
  std::int64_t rows = 0, nnz = 0;   ///< number of boundary rows, and of their nonzeros

  /// Rows from the first boundary row to the end.
  std::int64_t rows_from_first() const;
  /// Order: interior rows, boundary rows of the part's second half, boundary rows of its first half. Each group keeps its
  /// order. This keeps neighbours in a grid adjacent.
  HostVector<std::int64_t> order() const;
};

/// This rank owns the columns [begin, end) of x. REQUIRES: part.row_ptr[0] is 0.
BoundaryRows find_boundary_rows(const CsrView& part, std::int64_t begin, std::int64_t end);

/// Sorts the rows of the part by order().
void move_boundary_last(CompactCsr& part, const BoundaryRows& boundary);

}  // namespace shardmat
