// One solve: starts a method, lets it iterate, looks at its monitor, and recomputes the residual before it says "converged".
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/solvers/loop/attainable.h"
#include "runtime/solvers/loop/error_estimate.h"
#include "runtime/solvers/loop/exact_residual.h"
#include "runtime/solvers/loop/method.h"
#include "runtime/solvers/loop/monitor_memory.h"
#include "runtime/solvers/loop/null_space.h"
#include "runtime/solvers/loop/penalty_rows.h"
#include "runtime/solvers/loop/solve_result.h"
#include "runtime/solvers/loop/solver_options.h"
#include "runtime/solvers/loop/spectrum.h"
#include "runtime/solvers/loop/true_residual.h"

namespace shardmat {

/// What a loop works with; all of it outlives the loop.
struct SolveParts {
  Method& method;
  const Preconditioner& preconditioner;
  const Product& product;
  const krylov::Passes& passes;
  SumOverRanks& sum;  ///< of two values a column
  MonitorMemory& monitor;
  const NullSpaceProjector* projector;  ///< null without a null space
  const PenaltyFindings* penalty;       ///< null without penalty rows; the product holds them
  const ExactResidual& exact;
  const RoundingFloor& floor;
  Coefficients coefficients;  ///< that the method notes in the monitor
  MatrixNorm& norm;
};

class SolveLoop {
 public:
  SolveLoop(const SolveParts& parts, const SolverOptions& options, const SolveControl& control);
  SolveResult operator()(const DistributedVector& b, DistributedVector& x);

 private:
  /// What is known of a column besides its result.
  struct Column {
    bool done = false;
    krylov::Reason claimed = krylov::Reason::none;  ///< by the method, not seen to be true yet
    double target = 0, limit = 0;
    double true_before = 0;  ///< true residual of the start before
    bool lost = false;       ///< a correction did not make the residual smaller, and was taken back
    int small_gains = 0;     ///< starts that made it less than twice as small
    double floor = 0;  ///< attainable_share() of ‖ |A|·|x| ‖ at the last start that the method claimed; 0: not known
    double pause = 0;  ///< the method stops at this norm or below: the target, or what is far below rounding errors
    RitzValues ritz;
    double natural = 0, natural_of_b = 0;  ///< √(rᵀ·M·r) of the last start, and of b; 0 if the method does not tell
  };
  struct Dots {
    double with, square;
  };

  /// Takes a copy of b without its part in the null space.
  void remove_null_space(const DistributedVector& b, DistributedVector& x);
  /// Takes a copy of b without what the known values of penalty rows make of it, and zeros these rows there and in x.
  void take_known_values(const DistributedVector& b, DistributedVector& x);
  /// Finds the norms of b and whether x is zero.
  void measure(const DistributedVector& b, const DistributedVector& x);
  /// Throws Error(input) for a column of b that is not 0, but whose sum of squares is too small. Collective.
  void refuse_tiny(const DistributedVector& b, const std::vector<double>& squares) const;
  void clear_where_b_is_zero(DistributedVector& x);
  /// Multiplies each column by a factor.
  void scale(DistributedVector& vector, const std::vector<double>& factors);
  /// Starts the method and judges the columns by their true residuals; true if some go on.
  bool start();
  /// Starts the method anew, for A·d = b − A·x, with d = 0. Rounding errors of d are small beside those of x, so that the
  /// residual of x + d can become as small as rounding x allows.
  void start_correction();
  /// x += d, which stays known until keep_better().
  void take_correction();
  /// Columns whose residual a correction did not make smaller get their x from before.
  void keep_better(std::vector<double>& norms);
  /// The floors of columns that paused.
  void find_floors();
  /// Now and then: a residual that the method updates becomes ever smaller, but from some point on the true one does not.
  /// Finds this point for the present x.
  void find_pauses();
  std::int64_t iterations_done() const;
  /// So that find_pauses() sees the same x in every run.
  std::int64_t launches_until_pauses(std::int64_t iterations_a_launch) const;
  void judge(int column, double true_residual);
  /// a·b of each column, and the square of a norm of a, with b = M·a for norms other than that of a itself.
  std::vector<Dots> dots(const DistributedVector& a, const DistributedVector& b, ResidualNorm norm) const;
  void look_at_least_squares();
  void note_natural_norms();
  /// At the end: condition, backward error and how large the error is at most.
  void estimate_errors();
  /// Iterates until no column goes on.
  void iterate();
  void look();
  /// Collective: how many launches until the next look; 0: somebody asked for the end.
  std::int64_t launches_until_look(double seconds_a_launch, double seconds_so_far, double launches_left);
  /// If all residuals fall as they did in their best iteration; 0: that is not known yet.
  double iterations_left() const;
  void note_true_residuals(std::int64_t taken);
  void take_history();
  void call_monitor(std::int64_t before, std::int64_t now) const;
  void report_progress() const;
  /// Lets other work in between.
  void pause();
  bool goes_on() const;
  std::vector<double> to_host(const double* values) const;

  Method& method_;
  const Preconditioner& preconditioner_;
  const Product& product_;
  const krylov::Passes& passes_;
  SumOverRanks& sum_;
  MonitorMemory& monitor_;
  const NullSpaceProjector* projector_;
  const SolverOptions& options_;
  const SolveControl& control_;
  Stream& stream_;
  std::vector<Column> columns_;
  SolveResult result_;
  bool first_ = true, interrupted_ = false, renewed_ = false;
  std::int64_t next_pauses_;  ///< iterations at which find_pauses() looks; short solves do without
  Guess guess_ = Guess::any;
  const PenaltyFindings* penalty_;
  std::optional<DistributedVector> projected_b_, known_x_, reduced_b_;
  const ExactResidual& exact_;
  const RoundingFloor& floor_;
  const Coefficients coefficients_;
  MatrixNorm& norm_;
  bool pauses_;                                             ///< the norm of the options is that of the floor
  std::optional<DistributedVector> residual_, correction_;  ///< what the method works on after start_correction()
  const DistributedVector* b_ = nullptr;
  DistributedVector* x_ = nullptr;
  std::optional<TrueResidual> true_residual_;
};

}  // namespace shardmat
