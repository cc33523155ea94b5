// How many waiting columns the next product takes. The rule never waits for more requests: a product that can start, starts.
//
// Threads: any thread; there is no shared state.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/service/command.h"

namespace shardmat::serve {

/// The widths that a matrix has products of, with their times.
class WidthTable {
 public:
  WidthTable() = default;
  /// REQUIRES: ascending widths from 1 on, with times above 0.
  explicit WidthTable(std::vector<service::WidthTime> widths) : widths_(std::move(widths)) {}

  /// The most columns that one product takes; 0 for an empty table.
  std::int64_t widest() const { return widths_.empty() ? 0 : widths_.back().width; }
  /// Of the widths of at least `columns`, the fastest. REQUIRES: columns <= widest().
  const service::WidthTime& for_columns(std::int64_t columns) const;
  /// The width that finishes the most columns a second if `waiting` columns wait and the first request has `first` columns:
  /// the one with the largest min(waiting, width) / time, and of equal ones the narrowest. REQUIRES: first <= widest().
  const service::WidthTime& for_waiting(std::int64_t waiting, std::int64_t first) const;
  /// Seconds that so many columns take when products are as wide as pays.
  double seconds_for(std::int64_t columns) const;

 private:
  std::vector<service::WidthTime> widths_;
};

}  // namespace shardmat::serve
