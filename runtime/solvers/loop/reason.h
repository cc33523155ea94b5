// Why a solver ended.
//
// Threads: values; any thread.
#pragma once

#include <string_view>

namespace shardmat {

enum class SolveReason {
  converged_rtol,  ///< the residual is at most rtol·‖b‖
  converged_atol,  ///< the residual is at most atol, or b is 0 and so is x
  /// The tolerance was not met, but ‖b − A·x‖ cannot be told from 0: it is at most attainable_share()·‖ |A|·|x| ‖, and a
  /// hundredth of ‖b‖.
  converged_attainable,
  diverged_iterations,  ///< the most iterations that were allowed
  diverged_tolerance,   ///< the residual grew above divergence_tolerance·‖b‖
  diverged_breakdown,   ///< a division by zero in the method
  /// pᵀAp ≤ 0 in a method for positive definite matrices. If the residual had become less than half before, rounding errors
  /// may have done it, and the method begins anew.
  diverged_indefinite_matrix,
  diverged_indefinite_preconditioner,  ///< rᵀMr ≤ 0
  diverged_nan,                        ///< NaN or infinity came up
  diverged_attainable_accuracy,        ///< rounding errors keep the true residual above the tolerance
  interrupted,                         ///< the caller asked for the end
  /// No x solves the system: A is singular, and b is not consistent with it. x makes ‖b − A·x‖ the least, in the norm that
  /// the preconditioner makes: SolvedColumn::normal_residual. Not converged, because A·x = b was asked for.
  least_squares,
};

/// "converged_rtol", as in reports.
std::string_view name(SolveReason reason);
/// What is known besides the reason.
struct SolveCircumstances {
  bool f32 = false;                     ///< the matrix has values in f32
  bool maps_constants_to_zero = false;  ///< the matrix and its transpose do, and no null space was named
  bool maps_more_to_zero = false;       ///< SolveResult::maps_more_to_zero
};
/// A sentence for people: what happened and what may help. The text ends with a zero and is valid for ever.
std::string_view explain(SolveReason reason, const SolveCircumstances& circumstances = {});
inline bool converged(SolveReason reason) { return reason <= SolveReason::converged_attainable; }

}  // namespace shardmat
