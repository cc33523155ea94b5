// Ends a solve that makes no headway, so that another preconditioner can go on.
//
// Threads: as Solver.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/solvers/loop/solver_options.h"

namespace shardmat {

/// Watches the norms of the residuals of one solve: has the best of them been halved in the last `patience` iterations? With
/// `targets`, what each column's norm must come down to, it also predicts the iterations that are left, and many of them are
/// no headway. The same on all ranks.
class Headway {
 public:
  explicit Headway(std::int64_t patience, std::vector<double> targets = {})
      : patience_(patience), targets_(std::move(targets)) {}

  /// Asks `control` as before, and stops without headway. This object outlives the solve.
  SolveControl watch(const SolveControl& control) {
    SolveControl watched = control;
    watched.monitor = [this, &control](std::int64_t iterations, const std::vector<double>& norms,
                                       const std::vector<double>& true_norms) {
      if (control.monitor) control.monitor(iterations, norms, true_norms);
      note(iterations, norms);
      if (!targets_.empty()) predict(norms);
    };
    watched.stop = [this, &control] { return is_stuck() || is_slow() || (control.stop && control.stop()); };
    return watched;
  }
  bool is_stuck() const { return stuck_; }
  /// After some hundred iterations, more than some hundred are left.
  bool is_slow() const { return slow_; }
  std::int64_t patience() const { return patience_; }
  /// If is_slow(): the iterations that are left; kMost: that, or more.
  std::int64_t left() const { return left_; }
  static constexpr std::int64_t kMost = 10'000;

 private:
  void note(std::int64_t iterations, const std::vector<double>& norms) {
    const double norm = norms.empty() ? 0 : *std::max_element(norms.begin(), norms.end());
    if (norm <= best_ / 2) best_ = norm, since_ = iterations;
    stuck_ = iterations - since_ >= patience_;
  }
  /// By the rate of the last kSpan iterations.
  void predict(const std::vector<double>& norms) {
    constexpr std::size_t kFirst = 200, kSpan = 100;
    constexpr double kMany = 500;
    double excess = 0;  // of the column that has most of the way left, as a power of e
    for (std::size_t j = 0; j < norms.size(); ++j) excess = std::max(excess, std::log(norms[j] / targets_[j]));
    excess_.push_back(excess_.empty() ? excess : std::min(excess, excess_.back()));
    slow_ = false;
    if (excess_.size() < kFirst || excess_.back() <= 0) return;
    const double rate = (excess_[excess_.size() - kSpan] - excess_.back()) / kSpan;
    slow_ = excess_.back() > kMany * rate;
    left_ = excess_.back() < static_cast<double>(kMost) * rate ? static_cast<std::int64_t>(excess_.back() / rate) : kMost;
  }

  std::int64_t patience_, since_ = 0, left_ = 0;
  std::vector<double> targets_, excess_;
  double best_ = std::numeric_limits<double>::infinity();
  bool stuck_ = false, slow_ = false;
};

}  // namespace shardmat
