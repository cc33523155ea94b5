// Moves the rows of a square matrix, spread over the ranks, to new positions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/host_vector.h"
#include "kernels/matrix/csr.h"
#include "runtime/order/row_share.h"

namespace shardmat {

struct PlacedRows {
  std::vector<std::int64_t> starts;    ///< new rows of every rank, in even shares: [starts[p], starts[p + 1])
  HostCsr rows;                        ///< this rank's new rows, with new columns
  HostVector<std::int64_t> originals;  ///< original index of each of these rows
};

/// Collective. position[i]: the new position of row share.begin + i. Reads the share in slices, so a rank holds only its new
/// rows: 16 bytes a nonzero. Throws Error(resources) on all ranks before any rank allocates more memory than it has.
PlacedRows place_rows(const RowShare& share, std::span<const std::int64_t> position, Communicator& communicator);

}  // namespace shardmat
