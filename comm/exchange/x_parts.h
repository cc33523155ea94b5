// Who owns which columns of a matrix.
//
// Threads: any thread, several at a time; it is a view that nothing here changes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shardmat {

/// The parts of x, one for each rank.
struct XParts {
  std::vector<std::int64_t> starts;          ///< part p owns columns [starts[p], starts[p + 1]); P + 1 entries, the first 0
  std::span<const std::int64_t> order = {};  ///< this rank's entry i is column starts[rank] + order[i]; empty: + i
};

}  // namespace shardmat
