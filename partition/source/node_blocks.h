// The number of unknowns a node of a matrix whose rows one process can read.
#pragma once

#include <cstdint>

#include "partition/source/row_source.h"

namespace shardmat {

/// What the source knows (RowSource::node_block_size()), else what the pattern of some rows tells; 1 unless it is square.
std::int64_t find_node_block_size(const RowSource& source);

/// Throws Error(usage) unless the pattern shows that each node of `size` unknowns is still together in an order of the rows.
void require_nodes_in_order(std::int64_t size, const RowSource& permuted);
void require_nodes_in_order(std::int64_t size, std::int64_t found, const RowSource& permuted);

}  // namespace shardmat
