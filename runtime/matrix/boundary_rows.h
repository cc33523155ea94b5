// Boundary rows of a part need entries of x that other ranks own. Interior rows can be multiplied while x moves.
//
// Threads: as DistributedMatrix. Nothing is collective unless said otherwise.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/base/host_vector.h"
#include "kernels/matrix/compact_csr.h"

namespace shardmat {

class Context;
struct LoadedPart;
struct MatrixOptions;

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

/// May rows be multiplied while x moves: by two products, or by one that begins early, as the kernels of packed rows on a
/// GPU can where the rows of X begin at multiples of 16 bytes? For the matrix as its options say, or for one product.
bool may_overlap(const MatrixOptions& options, std::int64_t columns, std::int64_t column_block, const Context& context);

/// The last rows of a rank: they wait for x of other ranks.
struct Boundary {
  std::int64_t rows = 0;
  std::int64_t interior_nnz = 0;  ///< of the rows before them
  bool overlaps = false;          ///< on all ranks the rows before them may be multiplied while x moves
  /// What keeps rows that need no x of other ranks waiting: "the rows lie on the map of another matrix: …". Empty: nothing
  /// does, or may_overlap() says no for the whole matrix. The same on all ranks.
  std::string why_rows_wait;
};

/// Finds these rows, and moves them to the end unless the order is given. In a given order all rows from the first one that
/// needs x of other ranks count. They must hold at most half of a rank's nonzeros, else all its rows wait. Collective; the
/// same error on all ranks.
Boundary find_boundary(LoadedPart& part, const MatrixOptions& options, Context& context);

}  // namespace shardmat
