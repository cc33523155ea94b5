#include "runtime/source/row_lengths.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "comm/items_by_rank.h"
#include "kernels/base/memory_limits.h"
#include "partition/source/partitioner.h"

namespace shardmat {

std::vector<std::int64_t> items_to_ranks(std::span<const std::int64_t> from, std::span<const std::int64_t> to, int rank) {
  const std::int64_t begin = from[static_cast<std::size_t>(rank)], end = from[static_cast<std::size_t>(rank) + 1];
  std::vector<std::int64_t> counts;
  for (std::size_t p = 0; p + 1 < to.size(); ++p)
    counts.push_back(std::max<std::int64_t>(0, std::min(end, to[p + 1]) - std::max(begin, to[p])));
  return counts;
}

HostVector<std::int64_t> moved_rows(HostVector<std::int64_t> items, std::span<const std::int64_t> from,
                                    std::span<const std::int64_t> to, Communicator& ranks) {
  return send_items(ranks, ItemsByRank<std::int64_t>{items_to_ranks(from, to, ranks.rank()), std::move(items)}).items;
}

std::vector<std::int64_t> divide_rows(const std::string& method, const HostVector<std::int64_t>& lengths,
                                      std::span<const std::int64_t> from, Communicator& ranks,
                                      std::int64_t node_block_size) {
  const std::int64_t rows = from.back();
  std::vector<std::int64_t> on_root(static_cast<std::size_t>(ranks.size()) + 1, rows);
  on_root[0] = 0;
  const HostVector<std::int64_t> all = moved_rows(lengths, from, on_root, ranks);
  std::vector<std::int64_t> starts(on_root.size());
  ranks.run_agreed([&] {
    if (ranks.rank() != 0) return;
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 8 - 1;
    require_host_memory(8 * (std::min(rows, kMost) + 1), "counting the nonzeros of all rows");
    std::vector<std::int64_t> row_ptr(all.size() + 1);
    std::partial_sum(all.begin(), all.end(), row_ptr.begin() + 1);
    starts = make_partition(method, row_ptr, ranks.size(), node_block_size).row_starts;
  });
  ranks.broadcast(std::span<std::int64_t>(starts));
  return starts;
}

}  // namespace shardmat
