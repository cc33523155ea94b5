// Which rows of a part need entries of x that other ranks own. The others, the interior ones, can be multiplied while x
// moves.
#pragma once

#include <cstdint>

#include "kernels/base/host_vector.h"
#include "kernels/matrix/csr.h"

namespace shardmat {

struct BoundaryRows {
  HostVector<std::uint8_t> of_row;  ///< 1 for a boundary row
  std::int64_t rows = 0, nnz = 0;   ///< of all boundary rows
  /// Where that adds few nonzeros, so many rows are at a boundary together or not at all, and those behind the last so many
  /// are if any is: moving them then leaves blocks of rows, such as the unknowns of a node, where formats with blocks of up
  /// to 6 × 6 find them.
  static constexpr std::int64_t kTogether = 12;

  /// Rows of the part, the interior ones first, else in their order.
  HostVector<std::int64_t> order() const;
};

/// This rank owns the columns [begin, end) of x.
BoundaryRows find_boundary_rows(const HostCsr& part, std::int64_t begin, std::int64_t end);

/// Puts the rows of the part into order().
void move_boundary_last(HostCsr& part, const BoundaryRows& boundary);

}  // namespace shardmat
