#include "runtime/maps/row_runs.h"

#include <algorithm>

#include "kernels/base/parallel.h"

namespace shardmat {
namespace {

constexpr std::int64_t kMostRuns = std::int64_t{1} << 22, kGrain = 1 << 14;

}  // namespace

std::optional<RowRuns> RowRuns::make(std::int64_t first, std::span<const std::int64_t> ids, Communicator& communicator) {
  std::int64_t mine = 0;
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (i == 0 || ids[i] != ids[i - 1] + 1) ++mine;
  const std::vector<std::int64_t> of_ranks = communicator.all_gather(mine);
  std::int64_t all = 0, most = 0;
  for (const std::int64_t runs : of_ranks) all += runs, most = std::max(most, runs);
  if (most * communicator.size() > kMostRuns) return std::nullopt;
  const auto slot = static_cast<std::size_t>(most), rank = static_cast<std::size_t>(communicator.rank());
  std::vector<Run> gathered(slot * of_ranks.size());
  auto to = gathered.begin() + static_cast<std::ptrdiff_t>(rank * slot);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i == 0 || ids[i] != ids[i - 1] + 1) *to++ = {first + static_cast<std::int64_t>(i), ids[i], 0};
    ++to[-1].count;
  }
  if (most > 0) communicator.all_gather_slots(gathered.data(), slot * sizeof(Run));
  RowRuns runs;
  runs.by_position_.reserve(static_cast<std::size_t>(all));
  for (std::size_t r = 0; r < of_ranks.size(); ++r)
    runs.by_position_.insert(runs.by_position_.end(), gathered.begin() + static_cast<std::ptrdiff_t>(r * slot),
                             gathered.begin() + static_cast<std::ptrdiff_t>(r * slot) + of_ranks[r]);
  runs.by_id_.reserve(runs.by_position_.size());
  for (const Run& run : runs.by_position_) runs.by_id_.push_back({run.to, run.from, run.count});
  std::sort(runs.by_id_.begin(), runs.by_id_.end(), [](const Run& a, const Run& b) { return a.from < b.from; });
  return runs;
}

template <class Column>
void RowRuns::replace(const std::vector<Run>& runs, std::span<Column> columns) {
  parallel_ranges(std::ssize(columns), kGrain, [&](std::int64_t begin, std::int64_t end) {
    Run last{0, 0, 0};
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const std::int64_t column = columns[i];
      if (column < last.from || column >= last.from + last.count)
        last = *std::prev(std::upper_bound(runs.begin(), runs.end(), column,
                                           [](std::int64_t wanted, const Run& run) { return wanted < run.from; }));
      columns[i] = static_cast<Column>(column - last.from + last.to);
    }
  });
}

template void RowRuns::replace(const std::vector<Run>&, std::span<std::int32_t>);
template void RowRuns::replace(const std::vector<Run>&, std::span<std::int64_t>);

}  // namespace shardmat
