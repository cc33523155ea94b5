// Rows of a square matrix moved to new positions, spread over the ranks.
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
  std::vector<std::int64_t> starts;    ///< of every rank's new rows: even shares
  HostCsr rows;                        ///< this rank's, with new columns
  HostVector<std::int64_t> originals;  ///< their rows in the original matrix
};

/// Collective. position[i]: the new position of row share.begin + i. Reads the share in slices, so that the new rows are all
/// that is held: 16 bytes a nonzero. Throws Error(resources) on all ranks before one takes more than there is.
PlacedRows place_rows(const RowShare& share, std::span<const std::int64_t> position, Communicator& communicator);

}  // namespace shardmat
