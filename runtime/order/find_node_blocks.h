// Finds the number of unknowns a node in the sparsity pattern of a matrix whose rows lie on the ranks.
//
// Threads: one thread of each rank; everything here is collective, and gives the same on all ranks, for any number of ranks.
#pragma once

#include <cstdint>
#include <functional>

#include "comm/communicator.h"
#include "kernels/matrix/csr.h"
#include "partition/source/row_source.h"

namespace shardmat {

/// From a source of which this rank reads the rows [begin, end). The ranges of all ranks tile the rows.
std::int64_t find_node_block_size(const RowSource& source, std::int64_t begin, std::int64_t end, Communicator& ranks);

/// From rows that the ranks hold, with global columns. `number`: of each row of `own` in the whole matrix of `rows` rows.
std::int64_t find_node_block_size(std::int64_t rows, const CsrView& own,
                                  const std::function<std::int64_t(std::int64_t)>& number, Communicator& ranks);

}  // namespace shardmat
