// Which original row each position of a numbering is, for a numbering that consists of runs: the rows of files, and ranges
// that ranks own in any order. Matrices on different maps number their columns differently; this table leads from one to the
// other.
//
// Threads: make() is collective; the rest may be called by any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "comm/communicator.h"

namespace shardmat {

class RowRuns {
 public:
  /// Collective; the same on all ranks. `ids`: the original index of each row of this rank, in the order of the positions;
  /// `first`: the position of the first. None if the ranks have more than 2^22 runs together.
  static std::optional<RowRuns> make(std::int64_t first, std::span<const std::int64_t> ids, Communicator& communicator);

  /// Positions become original indices.
  void to_ids(std::span<std::int64_t> columns) const { replace(by_position_, columns); }
  void to_ids(std::span<std::int32_t> columns) const { replace(by_position_, columns); }
  /// Original indices become positions. REQUIRES: the runs of all ranks hold each index once.
  void to_positions(std::span<std::int64_t> columns) const { replace(by_id_, columns); }
  void to_positions(std::span<std::int32_t> columns) const { replace(by_id_, columns); }

 private:
  struct Run {
    std::int64_t from, to, count;  ///< from + i becomes to + i
  };
  template <class Column>
  static void replace(const std::vector<Run>& runs, std::span<Column> columns);

  std::vector<Run> by_position_, by_id_;  ///< sorted by `from`
};

}  // namespace shardmat
