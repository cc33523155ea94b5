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

  /// Rows of the part: the interior ones, then the boundary rows of the second half of the part, so that those that follow
  /// the interior ones in a grid still do, then those of the first half; all in their order.
  HostVector<std::int64_t> order() const;
};

/// This rank owns the columns [begin, end) of x.
BoundaryRows find_boundary_rows(const HostCsr& part, std::int64_t begin, std::int64_t end);

/// Puts the rows of the part into order().
void move_boundary_last(HostCsr& part, const BoundaryRows& boundary);

}  // namespace shardmat
