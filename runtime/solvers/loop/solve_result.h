// What a solve tells: why each column ended, residuals, and what was found out about the system.
//
// Ownership: values, which own what they hold.
// Threads: values; any thread. The same on all ranks; nothing is collective.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardmat {

enum class SolveReason {
  converged_rtol,  ///< the residual is at most rtol·‖b‖
  converged_atol,  ///< the residual is at most atol, or b is 0 and so is x
  /// The tolerance was not met, but ‖b − A·x‖ cannot be told from 0: it is at most attainable_share()·‖ |A|·|x| ‖, and at
  /// most a hundredth of ‖b‖.
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

/// Estimates of the extreme eigenvalues of M·A, or of its extreme singular values.
struct Spectrum {
  double least = 0, largest = 0;
  double condition() const { return largest / least; }
};

struct SolvedColumn {
  SolveReason reason = SolveReason::diverged_iterations;
  std::int64_t iterations = 0;
  /// In the norm of the options. With a null space: of b without its part there. With penalty rows: of b − A·x of their
  /// known values, in the other rows.
  double norm_of_b = 0;
  double removed_from_b = 0;  ///< 2-norm of what was removed from b, because it lies in the null space
  double residual = 0;        ///< as the method updated it
  double true_residual = 0;   ///< of b − A·x, computed anew, penalty rows left out; see SolveResult::why_f32
  /// Known if the tolerance was not met, and the residual is at most a hundredth of b: attainable_share()·‖ |A|·|x| ‖₂, the
  /// residual that rounding errors allow. Else 0.
  double floor = 0;
  /// ‖b − A·x‖₂ / (‖A‖₂·‖x‖₂ + ‖b‖₂): by what share of its norm A, and b, would have to change for x to be exact. See
  /// MatrixNorm for ‖A‖₂.
  double backward_error = 0;
  /// Of the preconditioned matrix M·A, or A·M, after two iterations or more: of cg extreme Ritz values (RitzValues), of
  /// minres, gmres and fgmres extreme singular values of their tridiagonal and Hessenberg matrices. Their quotient
  /// estimates the condition number from below. Other methods tell none.
  std::optional<Spectrum> spectrum;
  /// With the spectrum, how large the error of x is at most in relation to x, as far as the spectrum is known. Of cg in the
  /// energy norm √(xᵀ·A·x). Of other methods in the norm in which the preconditioner is 1: without one in the 2-norm.
  std::optional<double> error_bound;
  /// Of least_squares: ‖A·z‖ / (‖A‖·‖z‖) of z = M·r, in the norms in which M is 1. A maps z to 0, up to this.
  double normal_residual = 0;
  std::int64_t breakdowns = 0;    ///< restarts with other vectors because the method divided by zero
  std::int64_t replacements = 0;  ///< restarts because the true residual was above the tolerance
  std::vector<double> history;    ///< the first residual, then one for each iteration
  /// With SolveControl::true_residuals: ‖b − A·x‖₂ at the start and after each iteration, whatever the norm of the options;
  /// else empty.
  std::vector<double> true_history;
};

/// One method with its preconditioner that ran.
struct SolveAttempt {
  std::string solver, preconditioner;
  std::int64_t iterations = 0;  ///< of the column that took most
  double seconds = 0;
};

struct SolveResult {
  std::vector<SolvedColumn> columns;
  int null_vectors = 0;    ///< dimension of the null space that was removed
  std::string null_space;  ///< what was removed: "6 motions of a body that nothing holds …"
  double seconds = 0;
  std::int64_t iterations = 0;  ///< of the column that took most
  bool graph = false;           ///< iterations were replayed from a CUDA graph
  /// Why the true residuals of a matrix in f32 were summed in f32, by products. Empty: they were summed in f64.
  std::string why_f32;
  bool f32 = false;  ///< the matrix has values in f32
  /// True if the matrix and its transpose map constant vectors to 0 up to rounding. Checked only if a column did not
  /// converge in many iterations and no null space was named.
  bool maps_constants_to_zero = false;
  /// True if it maps constant vectors and others to 0 (maps_parts_to_zero()); then maps_constants_to_zero is false. Checked
  /// even if the null space was named.
  bool maps_more_to_zero = false;
  /// What ran, one after the other: several where choices of "auto" failed. `iterations` and the histories count those of
  /// all.
  std::vector<SolveAttempt> attempts;
  /// What was taken in place of a method or preconditioner that failed, and why; a line each.
  std::vector<std::string> fall_backs;
  std::int64_t penalty_rows = 0;  ///< rows whose values were taken as known; residuals leave them out
  double penalty_ratio = 0;       ///< the largest ratio of such a diagonal to all else; 0 without such rows
  std::string penalty_note;       ///< why rows that look like penalty rows are not taken; else empty
  bool converged() const;
  /// explain() of a column's reason.
  std::string_view explanation(const SolvedColumn& column) const;
};

}  // namespace shardmat
