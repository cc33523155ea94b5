// Numbers of rows that the ranks hold in ranges: moving them to other ranges, and cutting the rows into parts by them.
//
// Threads: one thread of each rank; everything here is collective, except items_to_ranks().
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/host_vector.h"

namespace shardmat {

/// Items that `rank` has for every rank when item i moves from the rank whose range in `from` holds i to the rank whose
/// range in `to` does.
std::vector<std::int64_t> items_to_ranks(std::span<const std::int64_t> from, std::span<const std::int64_t> to, int rank);

/// One item a row: from the ranks whose ranges in `from` hold the rows to the ranks whose ranges in `to` do.
HostVector<std::int64_t> moved_rows(HostVector<std::int64_t> items, std::span<const std::int64_t> from,
                                    std::span<const std::int64_t> to, Communicator& ranks);

/// Where the parts of make_partition(method, …) begin, from the length of each row in this rank's range of `from`. Rank 0
/// holds 16 bytes for each row of the whole matrix meanwhile. Throws the same error on all ranks.
std::vector<std::int64_t> divide_rows(const std::string& method, const HostVector<std::int64_t>& lengths,
                                      std::span<const std::int64_t> from, Communicator& ranks,
                                      std::int64_t node_block_size = 1);

}  // namespace shardmat
