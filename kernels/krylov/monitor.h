// What a solver's steps know about its end: the reasons, and for each column its norm, its limits and its history.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/krylov/step.h"

namespace shardmat::krylov {

/// Why a column is done. Order and names are public (runtime/solvers/loop/solve_result.h).
enum class Reason : int {
  none,  ///< goes on
  converged,
  diverged_iterations,
  diverged_tolerance,
  diverged_breakdown,
  diverged_indefinite_matrix,
  diverged_indefinite_preconditioner,
  diverged_nan,
  least_squares,  ///< no x makes the residual smaller
};

/// Arrays in device memory, one entry a column. The history has `history_length` rows of `columns` norms; iteration i is in
/// row (i - 1) mod history_length.
struct Monitor {
  int columns = 1;
  std::int64_t history_length = 0;
  const double* converged_below = nullptr;  ///< converged at a norm of this or less
  const double* diverged_above = nullptr;
  const std::int64_t* most_iterations = nullptr;
  double* norm = nullptr;
  double* history = nullptr;
  /// As the history, of the Lanczos process: all alpha or delta, then all beta or gamma; or null. Of conjugate gradients
  /// the iteration is x += alpha·p with p = z + beta·(p before).
  double* coefficients = nullptr;
  std::int64_t* iterations = nullptr;
  Reason* reason = nullptr;

  SHARDMAT_BOTH bool goes_on(int column) const { return reason[column] == Reason::none; }

  /// Before note(): the iteration took these factors.
  SHARDMAT_BOTH void note_coefficients(int column, double alpha, double beta) const {
    if (coefficients == nullptr) return;
    const std::int64_t at = iterations[column] % history_length * columns + column;
    coefficients[at] = alpha;
    coefficients[history_length * columns + at] = beta;
  }

  /// An iteration ended with this norm.
  SHARDMAT_BOTH void note(int column, double now) const {
    const std::int64_t done = ++iterations[column];
    history[(done - 1) % history_length * columns + column] = now;
    norm[column] = now;
    if (!(now - now == 0)) reason[column] = Reason::diverged_nan;
    else if (now <= converged_below[column]) reason[column] = Reason::converged;
    else if (now > diverged_above[column]) reason[column] = Reason::diverged_tolerance;
    else if (done >= most_iterations[column]) reason[column] = Reason::diverged_iterations;
  }

  /// The method cannot go on, for this reason.
  SHARDMAT_BOTH void stop(int column, Reason why) const { reason[column] = why; }
};

}  // namespace shardmat::krylov
