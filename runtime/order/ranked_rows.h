// One rank's view of a matrix whose rows lie spread over the ranks.
#pragma once

#include <functional>
#include <string>

#include "comm/communicator.h"
#include "partition/row_source.h"
#include "runtime/order/placed_rows.h"

namespace shardmat {

/// Collective. Calls use(source) on rank 0 with all rows one after another, ordered by the graph; while it asks for ranges,
/// the other ranks send them. Throws on all ranks what use() threw, or what require_mpi_threads() does.
void with_all_rows(const PlacedRows& placed, const std::string& name, Communicator& communicator,
                   const std::function<void(const RowSource&)>& use);

}  // namespace shardmat
