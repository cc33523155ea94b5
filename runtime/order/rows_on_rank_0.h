// Lets rank 0 read all rows of a matrix that is spread over the ranks.
#pragma once

#include <functional>
#include <string>

#include "comm/communicator.h"
#include "partition/source/row_source.h"
#include "runtime/order/placed_rows.h"

namespace shardmat {

/// Collective. Calls use(source) on rank 0; `source` has all rows in their new order, and knows nothing of their nodes. The
/// other ranks send the rows that it reads. Throws on all ranks what use() threw, or what require_mpi_threads() throws.
void read_all_on_rank_0(const PlacedRows& placed, const std::string& name, Communicator& communicator,
                        const std::function<void(const RowSource&)>& use);

}  // namespace shardmat
