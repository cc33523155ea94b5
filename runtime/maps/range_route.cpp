#include "runtime/maps/range_route.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"

namespace shardmat {
namespace {

constexpr int kTag = 28;

RangeRoute::Range common(const RangeRoute::Range& a, const RangeRoute::Range& b) {
  const std::int64_t first = std::max(a.first, b.first), end = std::min(a.first + a.count, b.first + b.count);
  return {first, std::max<std::int64_t>(0, end - first)};
}

}  // namespace

RangeRoute::RangeRoute(std::span<const Range> before, std::span<const Range> after, int rank) {
  const Range &mine_before = before[static_cast<std::size_t>(rank)], &mine_after = after[static_cast<std::size_t>(rank)];
  given_ = mine_before.count, taken_ = mine_after.count;
  for (std::size_t p = 0; p < before.size(); ++p) {
    if (const Range out = common(mine_before, after[p]); out.count > 0)
      sends_.push_back({static_cast<int>(p), out.first - mine_before.first, out.count});
    if (const Range in = common(before[p], mine_after); in.count > 0)
      receives_.push_back({static_cast<int>(p), in.first - mine_after.first, in.count});
  }
}

RangeRoute RangeRoute::of_items(std::span<const std::int64_t> before, std::span<const std::int64_t> after) const {
  const auto items = [](const std::vector<Run>& of_rows, std::span<const std::int64_t> offsets) {
    std::vector<Run> runs;
    for (const Run& run : of_rows) {
      const std::int64_t begin = offsets[static_cast<std::size_t>(run.first)],
                         end = offsets[static_cast<std::size_t>(run.first + run.count)];
      if (end > begin) runs.push_back({run.rank, begin - offsets.front(), end - begin});
    }
    return runs;
  };
  RangeRoute route;
  route.sends_ = items(sends_, before), route.receives_ = items(receives_, after);
  route.given_ = before.back() - before.front(), route.taken_ = after.back() - after.front();
  return route;
}

void RangeRoute::require_room(Side from, Side to, std::int64_t values, std::int64_t each, std::size_t value_bytes) {
  if (values != from.items * each)
    throw Error(ErrorKind::internal,
                fmt::format("{} values are to move, but there are {} of {} items", values, each, from.items));
  require_host_memory(to.items * each * static_cast<std::int64_t>(value_bytes), "what other ranks send of their rows");
}

void RangeRoute::move(Side from, Side to, Memory memory, Communicator& communicator) {
  std::vector<Communicator::Transfer::Outgoing> sends;
  std::vector<Communicator::Transfer::Incoming> receives;
  const char* mine = nullptr;
  for (const Run& run : from.runs) {
    const char* const data = memory.from + static_cast<std::size_t>(run.first) * memory.item_bytes;
    if (run.rank == communicator.rank()) mine = data;
    else sends.push_back({run.rank, data, static_cast<std::size_t>(run.count) * memory.item_bytes});
  }
  for (const Run& run : to.runs) {
    char* const data = memory.to + static_cast<std::size_t>(run.first) * memory.item_bytes;
    const std::size_t bytes = static_cast<std::size_t>(run.count) * memory.item_bytes;
    if (run.rank == communicator.rank()) std::memcpy(data, mine, bytes);
    else receives.push_back({run.rank, data, bytes});
  }
  Communicator::Transfer transfer = communicator.start(sends, receives, kTag);
  communicator.finish(transfer);
}

}  // namespace shardmat
