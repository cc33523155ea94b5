// Hubs are the columns of a CSR matrix with the most nonzeros. In power-law matrices, some hundreds or thousands of columns
// cause a large part of all gathers. A kernel that keeps the hubs' entries of x in shared memory leaves L1 to other entries.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/formats/csr.h"

namespace shardmat::cuda {

struct Hubs {
  int count = 0;
  Buffer columns;  ///< int32: the column of each hub
  Buffer coded;    ///< int32: col_idx, with ~i for the column of hub i; empty without hubs

  std::int64_t bytes() const { return static_cast<std::int64_t>(columns.bytes() + coded.bytes()); }
};

/// Finds at most `most` hubs: the columns with the most nonzeros, at least two.
Hubs find_hubs(const CsrStorage& a, std::size_t most, Stream& stream);

}  // namespace shardmat::cuda
