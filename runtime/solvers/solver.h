// Solves A·X = B by Krylov methods on all ranks.
//
//   shardmat::Solver solver(a, {.solver = "cg", .preconditioner = "jacobi"});
//   auto result = solver.solve(b, x);                  // begins from the x at hand
//   a.update_values(...); solver.refresh(); solver.solve(b, x);
//
// All vector work and all sums stay on the devices; the host looks once in a while whether columns are done. A result says
// "converged" only if b − A·x, computed anew, meets the tolerance.
//
// Ownership: a solver owns its product, preconditioner and vectors; its matrix must outlive it.
// Threads: as DistributedMatrix. The constructor, refresh() and solve() are collective.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/product.h"
#include "runtime/solvers/loop/solve_result.h"
#include "runtime/solvers/loop/solver_options.h"

namespace shardmat {

class ExactResidual;
class HeldRows;
class MatrixNorm;
class Method;
struct MethodEntry;
struct IterationCosts;
class NullSpaceProjector;
struct MethodInputs;
class MonitorMemory;
struct PenaltyFindings;
class Preconditioner;
struct SolverChoice;
class RoundingFloor;
class SumOverRanks;
class VectorSums;
namespace krylov {
class Passes;
}  // namespace krylov
namespace direct {
enum class Singular;
}  // namespace direct

class Solver {
 public:
  /// Makes the product, the preconditioner and the vectors. The matrix must outlive the solver. Throws the same error on all
  /// ranks: Error(usage) for unknown names; for a matrix that the method cannot take (not square, not symmetric), naming a
  /// method that can; and for a null space other than that of the options (require_constant_null_space()).
  Solver(DistributedMatrix& matrix, const SolverOptions& options);
  ~Solver();
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  /// Takes the new values of the matrix into the preconditioner. Checks the null space again, and looks for penalty rows
  /// again (so does solve() after new values).
  void refresh();
  /// Solves A·X = B from the X at hand. Vectors have the matrix's sum_type() and options.columns columns. Throws
  /// Error(input) if b or x holds NaN or infinity, or if b is so small that its squares underflow. The bits of x and of the
  /// history are the same in every run with the same number of ranks, kernel, exchange and variant. Of a matrix in f32, the
  /// host sums true residuals in f64 as long as it has the rows (DistributedMatrix::drop_host_rows()), in one pass at the
  /// end of the solve. If a column did not meet its tolerance, the host forms |A|·|x|, for SolvedColumn::floor.
  SolveResult solve(const DistributedVector& b, DistributedVector& x, const SolveControl& control = {});

  /// z = M·r: the preconditioner alone, set up by the constructor, as an operator of its own. Vectors as of solve().
  /// Collective.
  void precondition(const DistributedVector& r, DistributedVector& z);

  /// What other preconditioners would do.
  struct Trial {
    SolveResult result;
    std::string note;  ///< Preconditioner::describe()
  };
  /// Iterates from the x at hand with another preconditioner and this solver's product and method. The solver does not
  /// change. Meanwhile it takes the memory of one more preconditioner and method. Needs the host rows of the matrix, unless
  /// the solver has already formed this diagonal. Throws as the constructor. Collective.
  Trial try_preconditioner(const std::string& name, const PreconditionerOptions& preconditioning, std::int64_t iterations,
                           const DistributedVector& b, DistributedVector& x, const SolveControl& control);

  const Product& product() const { return *product_; }
  const Preconditioner& preconditioner() const { return *preconditioner_; }
  /// As given, with what was chosen for "auto", and with the relative tolerance. A solve that fell back to other choices
  /// changes them.
  const SolverOptions& options() const { return options_; }
  /// Why this method was chosen; empty if it was named.
  const std::string& method_why() const { return method_why_; }
  /// The same of the preconditioner.
  const std::string& preconditioner_why() const;
  /// Of cg: the variant that was taken, and why. None for other methods.
  const std::optional<CgChoice>& variant() const { return variant_; }
  /// What sums over the ranks: "kernel", "NCCL" or "MPI"; "none" for one rank.
  std::string_view summed_by() const;
  /// Average costs of an iteration on this rank, in a solve of `iterations`.
  IterationCosts costs(std::int64_t iterations) const;
  /// Device memory of the method, the preconditioner and the product.
  std::int64_t device_bytes() const;

 private:
  /// Makes what belongs to a choice: preconditioner, monitor, variant and method.
  void take(std::size_t choice);
  void take_first_possible(std::size_t choice);
  SolveResult solve_by_choices(const DistributedVector& b, DistributedVector& x, const SolveControl& control);
  std::vector<double> targets(const DistributedVector& b) const;
  bool take_factors(std::size_t factors, const std::string& ended, std::vector<std::string>& fall_backs);
  SolveResult solve_by_factors(std::size_t factors, SolveResult least_squares, const DistributedVector& first_x,
                               const DistributedVector& b, DistributedVector& x, const SolveControl& control);
  void require_vectors(const DistributedVector& b, const DistributedVector& x, const char* name_of_b = "b",
                       const char* name_of_x = "x") const;
  std::unique_ptr<Preconditioner> make_preconditioner(const std::string& name, PreconditionerOptions preconditioning) const;
  MethodInputs method_inputs(const Preconditioner& preconditioner, SolverOptions options) const;
  SolveResult run(Method& method, const Preconditioner& preconditioner, const SolverOptions& options,
                  const DistributedVector& b, DistributedVector& x, const SolveControl& control);
  void judge_by_rounding(SolveResult& result, const DistributedVector& b, const DistributedVector& x);
  void look_for_null_space(SolveResult& result);
  /// `singular`: factors say so, or doubt it.
  void look_for_free_modes(const MethodEntry& method, bool singular);
  /// With a solve by the factors; no for other preconditioners.
  direct::Singular singularity() const;
  /// What the options name is the null space, constants or vectors; nothing if they name none.
  void require_named_null_space();

  void refresh_parts();
  void find_norm();
  void look_for_penalty_rows();
  void take_new_penalty_rows();

  DistributedMatrix& matrix_;
  SolverOptions options_;
  std::unique_ptr<HeldRows> held_;  ///< the penalty rows
  std::unique_ptr<PenaltyFindings> penalty_;
  std::uint64_t penalty_version_ = 0;  ///< of the values that were looked at
  std::vector<SolverChoice> choices_;
  std::size_t choice_ = 0;  ///< the one that is taken
  std::string method_why_;
  std::unique_ptr<Preconditioner> preconditioner_;
  std::shared_ptr<const NullSpaceProjector> projector_;  ///< with a null space
  bool looks_for_free_modes_ = false;                    ///< even if the preconditioner does not
  std::string null_space_;                               ///< NullVectors::describe()
  std::unique_ptr<Product> product_;
  std::unique_ptr<ExactResidual> exact_;
  std::unique_ptr<RoundingFloor> floor_;
  std::unique_ptr<MatrixNorm> norm_;
  std::unique_ptr<krylov::Passes> passes_;
  std::unique_ptr<SumOverRanks> sum_;  ///< of two values a column
  std::unique_ptr<VectorSums> norms_;  ///< of precondition()
  std::unique_ptr<MonitorMemory> monitor_;
  std::optional<CgChoice> variant_;
  std::unique_ptr<Method> method_;
};

}  // namespace shardmat
