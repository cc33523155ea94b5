// Ends a solve that makes no headway, so that another preconditioner can go on.
//
// Threads: as Solver.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/solvers/loop/solver_options.h"

namespace shardmat {

/// Watches the norms of the residuals of one solve: has the best of them been halved in the last `patience` iterations? The
/// same on all ranks.
class Headway {
 public:
  explicit Headway(std::int64_t patience) : patience_(patience) {}

  /// Asks `control` as before, and stops without headway. This object outlives the solve.
  SolveControl watch(const SolveControl& control) {
    SolveControl watched = control;
    watched.monitor = [this, &control](std::int64_t iterations, const std::vector<double>& norms,
                                       const std::vector<double>& true_norms) {
      if (control.monitor) control.monitor(iterations, norms, true_norms);
      note(iterations, norms);
    };
    watched.stop = [this, &control] { return stuck_ || (control.stop && control.stop()); };
    return watched;
  }
  bool is_stuck() const { return stuck_; }
  std::int64_t patience() const { return patience_; }

 private:
  void note(std::int64_t iterations, const std::vector<double>& norms) {
    const double norm = norms.empty() ? 0 : *std::max_element(norms.begin(), norms.end());
    if (norm <= best_ / 2) best_ = norm, since_ = iterations;
    stuck_ = iterations - since_ >= patience_;
  }

  std::int64_t patience_, since_ = 0;
  double best_ = std::numeric_limits<double>::infinity();
  bool stuck_ = false;
};

}  // namespace shardmat
