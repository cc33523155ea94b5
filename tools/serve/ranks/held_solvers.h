// The solvers of a matrix that stay on the ranks, as the ranks have told.
//
// Threads: the thread of the event loop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/service/wire/command.h"

namespace shardmat::serve {

struct HeldSolver {
  std::string settings;  ///< as they were asked for
  std::int64_t columns = 1;
  std::string method, preconditioner, note;
  std::vector<std::int64_t> bytes;  ///< by rank
  double last_used = 0;             ///< when a solve by it began or ended, in seconds since 1970
};

class HeldSolvers {
 public:
  /// Those that the ranks have now; the answers are theirs to a Slice. The solver with these settings is in use, or has just
  /// been.
  void take(const std::vector<service::Answer>& answers, const std::string& settings, std::int64_t columns, double time);
  /// The ranks have dropped this one.
  void drop(const std::string& settings, std::int64_t columns);
  /// They have none any more. False if there was none.
  bool clear();

  const std::vector<HeldSolver>& all() const { return all_; }
  /// Of all, on a rank.
  std::int64_t bytes(std::size_t rank) const;

 private:
  std::vector<HeldSolver> all_;  ///< the one that was used last first
};

}  // namespace shardmat::serve
