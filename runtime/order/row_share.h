// Gives every rank an even share of a matrix's rows. All ranks read their shares in slices, in step.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/host_vector.h"
#include "partition/source/row_source.h"

namespace shardmat {

/// The p whose range [starts[p], starts[p + 1]) holds `index`.
int owner_of(std::span<const std::int64_t> starts, std::int64_t index);

struct RowShare {
  const RowSource& source;
  std::vector<std::int64_t> starts;    ///< rank p has the rows [starts[p], starts[p + 1])
  std::int64_t begin = 0, end = 0;     ///< this rank's rows
  HostVector<std::int64_t> lengths{};  ///< nonzeros of each of this rank's rows

  std::int64_t rows() const { return end - begin; }
  bool owns(std::int64_t row) const { return row >= begin && row < end; }
};

/// Collective.
RowShare take_share(const RowSource& source, Communicator& communicator);

/// Calls use(first_row, rows) for slices of the share with at most kSliceEntries nonzeros, or one row. Every rank makes the
/// same number of calls, the last ones with no rows, so use() may be collective. Collective.
void for_each_round(const RowShare& share, Communicator& communicator,
                    const std::function<void(std::int64_t first_row, const HostCsr& rows)>& use);

}  // namespace shardmat
