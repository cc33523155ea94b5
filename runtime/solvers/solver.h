// Solves A·X = B by Krylov methods on all ranks.
//
//   shardmat::Solver solver(a, {.solver = "cg", .preconditioner = "jacobi"});
//   auto result = solver.solve(b, x);                  // begins from the x at hand
//   a.update_values(...); solver.refresh(); solver.solve(b, x);
//
// All vector work and all sums stay on the devices; the host looks once in a while whether columns are done. A result says
// "converged" only if b − A·x, computed anew, meets the tolerance.
//
// Threads: as DistributedMatrix. The constructor, refresh() and solve() are collective.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/sum_over_ranks.h"
#include "kernels/base/progress.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/held_rows.h"
#include "runtime/matrix/penalty_rows.h"
#include "runtime/solvers/attainable.h"
#include "runtime/solvers/cg_variant.h"
#include "runtime/solvers/exact_residual.h"
#include "runtime/solvers/gram_schmidt.h"
#include "runtime/solvers/norm.h"
#include "runtime/solvers/null_space.h"
#include "runtime/solvers/own_preconditioner.h"
#include "runtime/solvers/preconditioner.h"
#include "runtime/solvers/reason.h"
#include "runtime/solvers/spectrum.h"

namespace shardmat {

class Method;
struct IterationCosts;
struct MethodInputs;
class MonitorMemory;

struct SolverOptions {
  std::string solver = "cg";            ///< see methods(); or "auto", see choose_method()
  std::string preconditioner = "none";  ///< see preconditioners()
  PreconditionerOptions preconditioning;
  /// Takes the place of `preconditioner`, which is none then; only for flexible methods (fgmres).
  std::optional<OwnPreconditioner> own_preconditioner;
  std::optional<double> rtol;  ///< of ‖b‖; none: default_rtol() of the matrix's type
  double atol = 0;             ///< of the residual itself
  double divergence_tolerance =
      1e5;  ///< ends when the residual is above this times the larger of ‖b‖ and the first residual
  std::int64_t max_iterations = 10'000;
  std::int64_t restart = 30;  ///< of gmres and fgmres
  GramSchmidt gram_schmidt = GramSchmidt::classical;
  /// Of cg. automatic: measured by the constructor; by a rule that measures nothing if the plan of the product is to be
  /// reproducible.
  CgVariant variant = CgVariant::automatic;
  ResidualNorm residual_norm = ResidualNorm::unpreconditioned;
  /// constant: what A maps to 0. Then the mean of each column is removed from b, from x and from what the preconditioner
  /// gives, and a b whose mean is not 0 is solved in the sense of least squares; tolerances are of the b without its mean.
  NullSpace null_space = NullSpace::none;
  /// Rows that state a known value by a huge diagonal. Their x is b_i / a_ii; the method works on the other rows and
  /// columns, with b − A·x of the known values. Norms and residuals are those of the other rows.
  PenaltyRows penalty_rows = PenaltyRows::automatic;
  bool assume_symmetric = false;  ///< does not check that the matrix is symmetric
  std::int64_t columns = 1;       ///< right-hand sides that are solved at once
  bool graph = true;              ///< replays iterations from a CUDA graph where the exchange allows it
  ProductOptions product;         ///< its number of columns is set by the solver
};

/// What a solve does while it runs.
struct SolveControl {
  Progress progress;
  /// Computes ‖b − A·x‖₂ by a product after every iteration, too; gmres and fgmres form x for it. Takes a further product an
  /// iteration and the device memory of three vectors, and the host waits for each iteration: no CUDA graph is used. The
  /// same on all ranks. The history and the bits of x stay as they are.
  bool true_residuals = false;
  /// Called on every rank, now and then, after all columns took as many iterations: the iterations and for each column the
  /// norm of its residual; and ‖b − A·x‖₂, or nothing without true_residuals.
  std::function<void(std::int64_t iterations, const std::vector<double>& norms, const std::vector<double>& true_norms)>
      monitor;
  /// Asked on every rank now and then; true on any rank ends the solve.
  std::function<bool()> stop;
};

struct SolvedColumn {
  SolveReason reason = SolveReason::diverged_iterations;
  std::int64_t iterations = 0;
  /// In the norm of the options; with a null space of the b without its mean; with penalty rows of b − A·x of their known
  /// values, in the other rows.
  double norm_of_b = 0;
  double removed_from_b = 0;  ///< 2-norm of what was removed from b, because it lies in the null space
  double residual = 0;        ///< as the method updated it
  double true_residual = 0;   ///< of b − A·x, computed anew, penalty rows left out; see SolveResult::why_f32
  /// Known if the tolerance was not met, and the residual is at most a hundredth of b: attainable_share()·‖ |A|·|x| ‖₂, the
  /// residual that rounding errors allow, and ‖b − A·x‖₂ / ‖ |A|·|x| ‖₂, by how much the entries of A would have to change
  /// for x to be exact. Else 0.
  double floor = 0, backward_error = 0;
  /// Of cg after two iterations or more: extreme Ritz values of the preconditioned matrix M·A, see RitzValues. Their
  /// quotient estimates its condition number from below.
  std::optional<Spectrum> spectrum;
  std::int64_t replacements = 0;  ///< restarts because the true residual was above the tolerance
  std::vector<double> history;    ///< the first residual, then one for each iteration
  /// With SolveControl::true_residuals: ‖b − A·x‖₂ at the start and after each iteration, whatever the norm of the options;
  /// else empty.
  std::vector<double> true_history;
};

struct SolveResult {
  std::vector<SolvedColumn> columns;
  double seconds = 0;
  std::int64_t iterations = 0;  ///< of the column that took most
  bool graph = false;           ///< iterations were replayed from a CUDA graph
  /// Why the true residuals of a matrix in f32 were summed in f32, by products. Empty: they were summed in f64.
  std::string why_f32;
  bool f32 = false;  ///< the matrix has values in f32
  /// Looked at if a column of many iterations did not converge, and no null space was named: the matrix and its transpose
  /// map constant vectors to 0 up to rounding.
  bool maps_constants_to_zero = false;
  /// Constant vectors, and others, too: maps_parts_to_zero(). Then maps_constants_to_zero is false. Looked at even if
  /// constant vectors were named.
  bool maps_more_to_zero = false;
  std::int64_t penalty_rows = 0;  ///< rows whose values were taken as known; residuals leave them out
  double penalty_ratio = 0;       ///< PenaltyFindings::largest_ratio
  std::string penalty_note;       ///< PenaltyFindings::note
  bool converged() const;
  /// explain() of a column's reason.
  std::string_view explanation(const SolvedColumn& column) const;
};

/// 1e-8; 1e-5 in f32, where rounding errors keep the residual of many an easy system above 1e-7.
double default_rtol(ValueType type);

class Solver {
 public:
  /// Makes the product, the preconditioner and the vectors. Throws the same error on all ranks: Error(usage) for unknown
  /// names and for a matrix that the method cannot take (not square; not symmetric), naming a method that can; or whose
  /// null space is not the one of the options (require_constant_null_space()). The matrix
  /// must outlive the solver.
  Solver(DistributedMatrix& matrix, const SolverOptions& options);
  ~Solver();
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  /// Takes the new values of the matrix into the preconditioner. Checks the null space again, and looks for penalty rows
  /// again (so does solve() after new values).
  void refresh();
  /// Solves A·X = B from the X at hand. Vectors of the matrix's sum_type() and of options.columns columns. Throws
  /// Error(input) if b or x holds NaN or infinity, or b is so small that its squares cannot be formed. The bits of x and of
  /// the history are the same in every run with as many ranks, the same kernel, exchange and variant. Of a matrix in f32,
  /// true residuals are summed in f64 by the host while it has the rows (DistributedMatrix::drop_host_rows()); this takes a
  /// pass over them at the end of the solve. If a column did not meet its tolerance, the host
  /// forms |A|·|x| (attainable.h).
  SolveResult solve(const DistributedVector& b, DistributedVector& x, const SolveControl& control = {});

  /// What other preconditioners would do.
  struct Trial {
    SolveResult result;
    std::string note;  ///< Preconditioner::describe()
  };
  /// Iterates with another preconditioner, with the product and the method of this solver, from the x at hand; this object
  /// stays as it was. Takes the memory of a preconditioner and of a method meanwhile. Needs the host rows of the matrix,
  /// unless it has looked for this diagonal before. Throws as the constructor. Collective.
  Trial try_preconditioner(const std::string& name, const PreconditionerOptions& preconditioning, std::int64_t iterations,
                           const DistributedVector& b, DistributedVector& x, const SolveControl& control);

  const Product& product() const { return *product_; }
  const Preconditioner& preconditioner() const { return *preconditioner_; }
  /// As given, with the method that was chosen for "auto", and with the relative tolerance.
  const SolverOptions& options() const { return options_; }
  /// Why this method was chosen; empty if it was named.
  const std::string& method_why() const { return method_why_; }
  /// Of cg: the variant that was taken, and why. None for other methods.
  const std::optional<CgChoice>& variant() const { return variant_; }
  /// What sums over the ranks: SumOverRanks::name().
  std::string_view summed_by() const { return sum_->name(); }
  /// What an iteration of a solve takes on this rank, on average, if so many were done.
  IterationCosts costs(std::int64_t iterations) const;
  /// Device memory of the method, the preconditioner and the product.
  std::int64_t device_bytes() const;

 private:
  void require_vectors(const DistributedVector& b, const DistributedVector& x) const;
  std::unique_ptr<Preconditioner> make_preconditioner(const std::string& name,
                                                      const PreconditionerOptions& preconditioning) const;
  /// `monitor`: of monitor_, or with fewer iterations.
  MethodInputs method_inputs(const Preconditioner& preconditioner, const krylov::Monitor& monitor, std::int64_t restart);
  SolveResult run(Method& method, const Preconditioner& preconditioner, const SolverOptions& options,
                  const DistributedVector& b, DistributedVector& x, const SolveControl& control);
  void judge_by_rounding(SolveResult& result, const DistributedVector& b, const DistributedVector& x);
  void look_for_null_space(SolveResult& result);

  void look_for_penalty_rows();
  void take_new_penalty_rows();

  DistributedMatrix& matrix_;
  SolverOptions options_;
  HeldRows held_;  ///< the penalty rows
  PenaltyFindings penalty_;
  std::uint64_t penalty_version_ = 0;  ///< of the values that were looked at
  std::string method_why_;
  std::unique_ptr<Preconditioner> preconditioner_;
  std::optional<MeanRemover> remove_mean_;  ///< with a null space
  std::unique_ptr<Product> product_;
  std::optional<ExactResidual> exact_;
  std::optional<RoundingFloor> floor_;
  std::optional<krylov::Passes> passes_;
  std::optional<SumOverRanks> sum_;  ///< of two values a column
  std::unique_ptr<MonitorMemory> monitor_;
  std::optional<CgChoice> variant_;
  std::unique_ptr<Method> method_;
};

}  // namespace shardmat
