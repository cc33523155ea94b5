// The transpose of a matrix, spread over the ranks by its own rows.
//
// Threads: one thread of each rank; transposed() is collective.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "comm/communicator.h"
#include "runtime/source/matrix_source.h"

namespace shardmat {

struct CsrView;

/// Changes the values of some whole rows of A before they are sent: the rows first_row, first_row + 1 … in the order of the
/// source. `values` has one f64 for each nonzero of `rows`, in their order. Not collective; may throw.
using EditRows = std::function<void(std::int64_t first_row, const CsrView& rows, std::span<double> values)>;

/// Aᵀ of a matrix A of any shape. Each rank keeps the rows of Aᵀ in its part of make_partition(method, …), so the result can
/// be used only on these ranks and with this method (MatrixSource::by_part). Parts begin at multiples of `node_block_size`
/// rows; 0: found in the pattern of a square A. A square matrix stays in the order of the
/// source, which permutation() tells; the columns of any other Aᵀ are in the original order of A's rows.
///
/// REQUIRES: every rank can read its even share of A's rows: open_matrix() with the method "rows", or a source that is not
/// by_part. A is read twice, in slices: first to count the rows of Aᵀ, then to send each entry to its owner.
///
/// Memory of a rank: 16 bytes a nonzero and 24 bytes a row of its part, 16 bytes a row and a column of even shares, and what
/// the ranks send each other for one slice. Rank 0 also takes 16 bytes for each row of Aᵀ. Collective; the same error on
/// all ranks.
MatrixSource transposed(const MatrixSource& a, const std::string& method, Communicator& ranks, const EditRows& edit = {},
                        std::int64_t node_block_size = 1);

}  // namespace shardmat
