// The number of unknowns a node of a matrix whose rows one process can read.
#pragma once

#include <cstdint>

#include "partition/row_source.h"

namespace shardmat {

/// What the source knows (RowSource::node_block_size()), else what the pattern of some rows tells; 1 unless it is square.
std::int64_t find_node_block_size(const RowSource& source);

}  // namespace shardmat
