// The columns of a CSR matrix that most of its nonzeros share. In power-law matrices some hundreds or thousands of columns
// take a large part of all gathers; kernels that keep their entries of x in shared memory leave L1 to the others.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/formats/csr.h"

namespace shardmat::cuda {

struct Hubs {
  int count = 0;
  Buffer columns;  ///< int32: of each hub
  Buffer coded;    ///< int32: col_idx with a hub as the complement of its place in `columns`; empty without hubs

  std::int64_t bytes() const { return static_cast<std::int64_t>(columns.bytes() + coded.bytes()); }
};

/// At most `most` hubs, those with most nonzeros; columns with fewer than two are none.
Hubs find_hubs(const CsrStorage& a, std::size_t most, Stream& stream);

}  // namespace shardmat::cuda
