#include "comm/exchange/gathered_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/base/text.h"

namespace shardmat {
namespace {

constexpr std::int64_t kAlign = 32;  // entries

}  // namespace

std::int64_t GatheredLayout::part_size(int part) const {
  return starts.at(static_cast<std::size_t>(part) + 1) - starts.at(static_cast<std::size_t>(part));
}

std::int64_t gathered_length(const std::vector<std::int64_t>& starts) {
  std::int64_t largest = 0;
  for (std::size_t p = 0; p + 1 < starts.size(); ++p) largest = std::max(largest, starts[p + 1] - starts[p]);
  return (largest + kAlign) * (std::ssize(starts) - 1);
}

GatheredLayout make_gathered_layout(std::vector<std::int64_t> starts) {
  if (starts.size() < 2 || starts.front() != 0 || !std::is_sorted(starts.begin(), starts.end()))
    throw Error(ErrorKind::internal, "the starts of the parts of x must begin with 0 and not decrease");
  constexpr std::int64_t kLimit = std::int64_t{1} << 31;
  GatheredLayout layout;
  layout.starts = std::move(starts);
  std::int64_t largest = 0;
  for (int p = 0; p < layout.parts(); ++p) largest = std::max(largest, layout.part_size(p));
  if (largest > (kLimit - kAlign) / layout.parts())
    throw Error(ErrorKind::resources,
                fmt::format("an all-gather of x is impossible: {} parts of up to {} entries (the largest part sets the room "
                            "of each) reach the limit of 2^31 entries on a rank; use fewer ranks, or parts with more "
                            "even numbers of rows",
                            layout.parts(), human_count(largest)));
  layout.stride = layout.parts() == 1 ? largest : (largest + kAlign - 1) / kAlign * kAlign;
  return layout;
}

GatheredLayout make_gathered_layout(Communicator& communicator, const XParts& parts) {
  GatheredLayout layout = communicator.run_agreed([&] { return make_gathered_layout(parts.starts); });
  if (communicator.all_reduce(parts.order.empty() ? 0 : 1, Reduction::max) == 0) return layout;
  HostVector<std::int32_t>& moved = layout.moved;
  communicator.run_agreed([&] {
    require_host_memory(4 * layout.length(), "the order of x on every rank");
    moved.resize(static_cast<std::size_t>(layout.length()));
  });
  std::int32_t* mine = moved.data() + layout.stride * communicator.rank();
  if (parts.order.empty()) std::iota(mine, mine + layout.part_size(communicator.rank()), 0);
  for (std::size_t i = 0; i < parts.order.size(); ++i) mine[parts.order[i]] = static_cast<std::int32_t>(i);
  communicator.all_gather_slots(moved.data(), static_cast<std::size_t>(layout.stride) * sizeof(std::int32_t));
  return layout;
}

namespace {

template <class Column>
void renumber_columns(const GatheredLayout& layout, std::span<Column> columns) {
  const std::vector<std::int64_t>& starts = layout.starts;
  parallel_ranges(static_cast<std::int64_t>(columns.size()), 1 << 16, [&](std::int64_t first, std::int64_t last) {
    std::int64_t part_begin = 0, part_end = 0, shift = 0;  // of the part that held the last column: neighbours share it
    for (auto k = static_cast<std::size_t>(first); k < static_cast<std::size_t>(last); ++k) {
      const std::int64_t column = columns[k];
      if (column < part_begin || column >= part_end) {
        if (starts.empty() || column < 0 || column >= starts.back())
          throw Error(ErrorKind::internal, fmt::format("column {} is in no part of x", column));
        // The last part that starts at or before the column; empty parts before it share its start.
        const auto above = std::upper_bound(starts.begin(), starts.end(), column);
        part_begin = *(above - 1);
        part_end = *above;
        shift = (above - 1 - starts.begin()) * layout.stride - part_begin;
      }
      const std::int64_t position = column + shift;
      columns[k] = static_cast<Column>(
          layout.moved.empty() ? position : part_begin + shift + layout.moved[static_cast<std::size_t>(position)]);
    }
  });
}

}  // namespace

void GatheredLayout::renumber(std::span<std::int64_t> columns) const { renumber_columns(*this, columns); }
void GatheredLayout::renumber(std::span<std::int32_t> columns) const { renumber_columns(*this, columns); }

void GatheredLayout::forget_columns() {
  moved = HostVector<std::int32_t>();  // = {} would keep the memory
}

}  // namespace shardmat
