// A sparse matrix of dense blocks in the memory of a GPU: what the set-up of multigrid works on there.
//
// Threads: values; used by one stream at a time.
#pragma once

#include <cstdint>

#include "kernels/base/device.h"

namespace shardmat::blocks {

/// Block k couples a node of row_size unknowns with one of col_size; row-major.
struct BlockRows {
  int row_size = 1, col_size = 1;
  std::int64_t count = 0, cols = 0;  ///< nodes of rows and of columns
  std::int64_t blocks = 0;
  Buffer start;   ///< std::int64_t, count + 1
  Buffer column;  ///< std::int32_t, ascending in each row
  Buffer value;   ///< double

  std::int64_t block_entries() const { return std::int64_t{row_size} * col_size; }
};

/// Nodes have this many unknowns at most.
constexpr int kMostUnknowns = 12;

}  // namespace shardmat::blocks
