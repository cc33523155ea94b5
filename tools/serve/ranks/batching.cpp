#include "tools/serve/ranks/batching.h"

#include <algorithm>

namespace shardmat::serve {

using service::WidthTime;

WidthTime WidthTable::for_columns(std::int64_t columns) const {
  const WidthTime* best = &widths_.back();
  if (columns > best->width)
    return {best->width, best->seconds * static_cast<double>((columns + best->width - 1) / best->width)};
  for (const WidthTime& one : widths_)
    if (one.width >= columns && one.seconds < best->seconds) best = &one;
  return *best;
}

const WidthTime& WidthTable::for_waiting(std::int64_t waiting, std::int64_t first) const {
  const WidthTime* best = nullptr;
  double most = 0;
  for (const WidthTime& one : widths_) {
    if (one.width < std::min(first, widest())) continue;
    const double rate = static_cast<double>(std::min(waiting, one.width)) / one.seconds;
    if (best != nullptr && rate <= most) continue;
    best = &one, most = rate;
  }
  return *best;
}

std::int64_t WidthTable::columns_of_next(std::int64_t waiting, std::int64_t first) const {
  return merging_ == Merging::off ? first : std::max(first, for_waiting(waiting, first).width);
}

double WidthTable::seconds_for(std::int64_t columns) const {
  if (columns == 0 || widths_.empty()) return 0;
  if (merging_ == Merging::off) return for_columns(1).seconds * static_cast<double>(columns);
  const WidthTime& one = for_waiting(columns, 1);
  return one.seconds * static_cast<double>((columns + one.width - 1) / one.width);
}

}  // namespace shardmat::serve
