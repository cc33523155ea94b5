// An even share of a matrix' rows for every rank, read in slices by all ranks in step.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/host_vector.h"
#include "partition/row_source.h"

namespace shardmat {

/// Which of the ranges that begin at starts[p] holds `index`.
int owner_of(std::span<const std::int64_t> starts, std::int64_t index);

struct RowShare {
  const RowSource& source;
  std::vector<std::int64_t> starts;    ///< of every rank's rows
  std::int64_t begin = 0, end = 0;     ///< this rank's
  HostVector<std::int64_t> lengths{};  ///< nonzeros of each of them

  std::int64_t rows() const { return end - begin; }
  bool owns(std::int64_t row) const { return row >= begin && row < end; }
};

/// Collective.
RowShare take_share(const RowSource& source, Communicator& communicator);

/// Collective: use(first_row, rows) for slices of at most kSliceEntries nonzeros or one row, as often on every rank, at the
/// end with no rows, so that it may be collective itself.
void for_each_round(const RowShare& share, Communicator& communicator,
                    const std::function<void(std::int64_t first_row, const HostCsr& rows)>& use);

}  // namespace shardmat
