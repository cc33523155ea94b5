// How many waiting columns the next product takes. The rule never waits for more requests: a product that can start, starts.
//
// Threads: any thread; there is no shared state.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/service/wire/command.h"

namespace shardmat::serve {

/// `off`: every request has a product of its own.
enum class Merging { on, off };

/// The widths that a matrix has products of, with their times.
class WidthTable {
 public:
  WidthTable() = default;
  /// REQUIRES: ascending widths from 1 on, with times above 0.
  explicit WidthTable(std::vector<service::WidthTime> widths, Merging merging = Merging::on)
      : measured_(std::move(widths)), widths_(measured_), merging_(merging) {}

  Merging merging() const { return merging_; }
  /// The columns of the widest product; 0 for an empty table. A wider request gets several of these, one after another.
  std::int64_t widest() const { return widths_.empty() ? 0 : widths_.back().width; }
  /// Of the widths of at least `columns`, the fastest by the measured times. For more than widest(): the widest, with the
  /// time of its products.
  service::WidthTime for_columns(std::int64_t columns) const;
  /// The width that finishes the most columns a second if `waiting` columns wait and the first request has `first` columns:
  /// the one with the largest min(waiting, width) / (time + hand_over()), and of equal ones the narrowest. A request of more
  /// than widest() columns takes the widest.
  const service::WidthTime& for_waiting(std::int64_t waiting, std::int64_t first) const;
  /// The most columns that the next product takes of those that wait; at least `first`.
  std::int64_t columns_of_next(std::int64_t waiting, std::int64_t first) const;
  /// Seconds that so many columns take when products are as wide as pays. Without merging: as requests of one column.
  double seconds_for(std::int64_t columns) const;

  /// A product of this width took the ranks so many seconds, and `whole` seconds passed from its command to the answer. They
  /// share cores and memory with requests whose bodies move, so products take longer than when the matrix was loaded, and
  /// wide ones may lose more than narrow ones. What was not observed for long goes back to the measured time, and is then
  /// tried again.
  void observe(std::int64_t width, double seconds, double whole);
  /// Seconds in which command and answer of a product travel, as observed. Whatever the width, a product costs them once.
  double hand_over() const { return hand_over_; }

 private:
  std::vector<service::WidthTime> measured_;  ///< when the matrix was loaded
  std::vector<service::WidthTime> widths_;    ///< as it is to be expected now
  double hand_over_ = 0;
  Merging merging_ = Merging::on;
};

}  // namespace shardmat::serve
