// Progress on standard error while something long runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "kernels/base/progress.h"

namespace shardmat::tools {

/// A bar redrawn a few times a second, for work that takes longer than half a second; empty where none is wanted
/// (SHARDMAT_PROGRESS, no terminal, not rank 0).
Progress make_progress_bar();

/// Draws the iteration, its residual and the iterations a second, in place of a bar: nobody knows how many are needed.
class IterationLine {
 public:
  /// `phase` stands before the numbers.
  explicit IterationLine(std::string phase) : phase_(std::move(phase)) {}
  /// False where make_progress_bar() draws nothing.
  static bool is_wanted();
  void update(std::int64_t iteration, double residual);
  /// Ends the line, if there is one.
  void end();

 private:
  std::string phase_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now(), drawn_;
};

}  // namespace shardmat::tools
