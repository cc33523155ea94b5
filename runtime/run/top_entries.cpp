#include "runtime/run/top_entries.h"

#include <algorithm>
#include <numeric>

#include "comm/items_by_rank.h"
#include "kernels/base/memory_limits.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/vectors.h"

namespace shardmat {
namespace {

struct Found {
  std::int64_t column;
  TopEntry entry;
};

bool before(const TopEntry& a, const TopEntry& b) { return a.value != b.value ? a.value > b.value : a.index < b.index; }

void keep_first(std::vector<TopEntry>& entries, std::int64_t count) {
  const auto kept = static_cast<std::ptrdiff_t>(std::min<std::int64_t>(count, std::ssize(entries)));
  std::partial_sort(entries.begin(), entries.begin() + kept, entries.end(), before);
  entries.resize(static_cast<std::size_t>(kept));
}

}  // namespace

std::vector<std::vector<TopEntry>> top_entries(const DistributedVector& vector, std::int64_t count, Stream& stream) {
  Communicator& ranks = vector.context().communicator();
  const auto columns = static_cast<std::size_t>(vector.columns());
  ItemsByRank<Found> found{std::vector<std::int64_t>(static_cast<std::size_t>(ranks.size())), {}};
  ranks.run_agreed([&] {
    require_host_memory(8 * vector.local_rows() * vector.columns() + 16 * vector.local_rows(), "the largest entries");
    const auto values = to_host(vector.view().data, vector.local_rows() * vector.columns(), vector.type(), stream);
    std::vector<TopEntry> entries;
    for (std::size_t j = 0; j < columns; ++j) {
      entries.clear();
      for (std::size_t i = 0; i < vector.ids().size(); ++i) entries.push_back({vector.ids()[i], values[i * columns + j]});
      keep_first(entries, count);
      for (const TopEntry& entry : entries) found.items.push_back({static_cast<std::int64_t>(j), entry});
    }
    found.counts[0] = std::ssize(found.items);
  });
  std::vector<std::vector<TopEntry>> top(columns);
  for (const Found& one : send_items(ranks, found).items) top[static_cast<std::size_t>(one.column)].push_back(one.entry);
  const auto length = static_cast<std::size_t>(std::min(count, vector.rows()));
  for (std::vector<TopEntry>& column : top) {
    keep_first(column, count);
    column.resize(length);  // on ranks other than 0 there is nothing yet
    ranks.broadcast(std::span<TopEntry>(column));
  }
  return top;
}

}  // namespace shardmat
