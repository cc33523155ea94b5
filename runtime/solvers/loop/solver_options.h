// What a solve is asked for, and what it tells.
//
// Threads: values that a program copies as it likes. Options are the same on all ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/progress.h"
#include "kernels/base/types.h"
#include "runtime/matrix/matrix_options.h"
#include "runtime/solvers/loop/choices.h"
#include "runtime/solvers/loop/own_preconditioner.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/loop/reason.h"

namespace shardmat {

class DistributedVector;

struct SolverOptions {
  std::string solver = "auto";          ///< see methods(); "auto": see choose_method()
  std::string preconditioner = "auto";  ///< see preconditioners(); "auto": see choose_solvers()
  PreconditionerOptions preconditioning;
  /// Replaces `preconditioner`, which must be "none" or "auto". For cg, fgmres, and any method if it is linear.
  std::optional<OwnPreconditioner> own_preconditioner;
  std::optional<double> rtol;  ///< of ‖b‖; none: default_rtol() of the matrix's type
  double atol = 0;             ///< of the residual itself
  double divergence_tolerance =
      1e5;  ///< ends when the residual is above this times the larger of ‖b‖ and the first residual
  std::int64_t max_iterations = 10'000;  ///< of a solve, whatever "auto" chooses one after the other
  std::int64_t restart = 30;             ///< of gmres and fgmres
  GramSchmidt gram_schmidt = GramSchmidt::classical;
  /// For cg. automatic: the constructor measures both variants. If the plan must be reproducible, a rule decides without
  /// measuring.
  CgVariant variant = CgVariant::automatic;
  ResidualNorm residual_norm = ResidualNorm::unpreconditioned;
  /// What A maps to 0. It is removed from b, from x and from the result of the preconditioner. A b with a part in it is
  /// solved in the sense of least squares, and tolerances refer to b without that part. automatic: looked for by multigrid,
  /// and for small matrices if the preconditioner is chosen; else as none.
  NullSpace null_space = NullSpace::automatic;
  /// Vectors that span what A and its transpose map to 0, in place of null_space, which must be automatic then. They need
  /// not be orthogonal.
  std::shared_ptr<const NearNullVectors> null_vectors;
  /// Rows that state a known value by a huge diagonal. Their x is b_i / a_ii; the method works on the other rows and
  /// columns, with b − A·x of the known values. Norms and residuals are those of the other rows.
  PenaltyRows penalty_rows = PenaltyRows::automatic;
  bool assume_symmetric = false;  ///< does not check that the matrix is symmetric
  std::int64_t columns = 1;       ///< right-hand sides that are solved at once
  bool graph = true;              ///< replays iterations from a CUDA graph where the exchange allows it
  ProductOptions product;         ///< its number of columns is set by the solver
};

/// What a solve does while it runs. Choices of "auto" that follow one another count as one solve.
struct SolveControl {
  Progress progress;
  /// Also computes ‖b − A·x‖₂ after every iteration; gmres and fgmres form x for it. This takes one more product an
  /// iteration and the device memory of three vectors. The host waits for each iteration, so no CUDA graph is used. The same
  /// on all ranks. The history and the bits of x do not change.
  bool true_residuals = false;
  /// Called on every rank now and then with the number of iterations and the norm of each column's residual. true_norms has
  /// ‖b − A·x‖₂ of each column; empty without true_residuals.
  std::function<void(std::int64_t iterations, const std::vector<double>& norms, const std::vector<double>& true_norms)>
      monitor;
  /// Called on every rank after each iteration with the x so far, if true_residuals is set; has no value on feeders.
  std::function<void(std::int64_t iterations, const DistributedVector& x)> watch;
  /// Asked on every rank now and then; true on any rank ends the solve.
  std::function<bool()> stop;
  /// Called on every rank after each iteration, on a GPU after each launch of some. It may do other work of the same ranks
  /// meanwhile, and come back much later: x, the matrix and the solver must not change. False ends the solve. The same on
  /// all ranks.
  std::function<bool()> pause;
};

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

/// A method and a preconditioner that ran.
struct SolveAttempt {
  std::string solver, preconditioner;
  std::int64_t iterations = 0;  ///< of the column that took most
  double seconds = 0;
};

struct SolveResult {
  std::vector<SolvedColumn> columns;
  int null_vectors = 0;    ///< dimension of the null space that was removed
  std::string null_space;  ///< NullVectors::describe()
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
  double penalty_ratio = 0;       ///< PenaltyFindings::largest_ratio
  std::string penalty_note;       ///< PenaltyFindings::note
  bool converged() const;
  /// explain() of a column's reason.
  std::string_view explanation(const SolvedColumn& column) const;
};

/// 1e-8; 1e-5 in f32, where rounding errors keep the residual of many an easy system above 1e-7.
double default_rtol(ValueType type);

}  // namespace shardmat
