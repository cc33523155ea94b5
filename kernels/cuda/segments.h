// A CSR matrix as one long sequence of nonzeros with a flag where a row begins, for csr_segmented.cu and
// csr_segmented_spmm.cu. A warp takes a chunk of it: some steps of 32·items nonzeros, of which each lane has `items`
// neighbours. Row offsets are not read by products.
#pragma once

#include <cstdint>

#include "kernels/cuda/split_rows.h"
#include "kernels/formats/csr.h"

namespace shardmat::cuda {

struct Segments {
  std::int64_t chunks = 0, empty_count = 0;
  Buffer flags;     ///< a bit a nonzero, set where a row begins; whole steps, 0 behind the last nonzero
  Buffer begun;     ///< int32, chunks + 1: the rows that begin before each chunk
  Buffer rows;      ///< int32: the rows that are not empty
  Buffer empty;     ///< int32: the others
  SplitRows split;  ///< a tile a chunk, and one behind the last chunk

  std::int64_t bytes() const {
    return split.bytes() + static_cast<std::int64_t>(flags.bytes() + begun.bytes() + rows.bytes() + empty.bytes());
  }
};

/// `columns`: of the product. REQUIRES: fewer than 2^31 rows, `items` a multiple of 8.
Segments find_segments(const CsrStorage& a, int items, int steps, int columns, Stream& stream);

}  // namespace shardmat::cuda
