// Multigrid of K + |σ|·M makes the eigenvalues that MINRES sees (λ − σ) / (λ + |σ|): between −1 and 1, small near the shift
// alone. That matrix is positive definite even where nothing holds a body.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "runtime/context/context.h"
#include "runtime/solvers/eigen/shifted.h"
#include "runtime/solvers/multigrid/known_nodes.h"
#include "runtime/solvers/solver.h"

namespace shardmat::modes {
namespace {

class ShiftedMinres final : public ShiftedInverse {
 public:
  ShiftedMinres(Pencil& pencil, double sigma, const PairOptions& options)
      : p_(pencil),
        matrix_(pencil.combined(sigma)),
        definite_(pencil.combined(-std::abs(sigma))),
        asked_(options.inner_tolerance > 0 ? options.inner_tolerance : options.tolerance / 10) {
    PreconditionerOptions of_definite;
    of_definite.columns = static_cast<int>(kPanel), of_definite.multigrid = options.multigrid;
    MultigridOptions& multigrid = of_definite.multigrid;
    take_known_nodes(p_.k(), multigrid);
    // K maps rigid-body modes to almost 0, K + |σ|·M does not.
    const bool rigid = multigrid.coordinates && !multigrid.near_null_vectors && multigrid.near_null_space == "auto" &&
                       multigrid.coordinates->dimensions == p_.k().node_block_size();
    if (ranks().all_reduce(rigid ? 1 : 0, Reduction::min) == 1) multigrid.near_null_space = "rigid";
    inverse_ = make_multigrid(*definite_, of_definite);
    definite_->drop_host_rows();
    of_solver_.solver = "minres", of_solver_.columns = kPanel, of_solver_.assume_symmetric = true;
    of_solver_.rtol = asked_;
    of_solver_.max_iterations = kMostIterations;
    of_solver_.penalty_rows = PenaltyRows::keep;
    OwnPreconditioner own;
    own.linear = true;
    own.apply = [this](const ConstDense& r, const Dense& z, Stream& stream) {
      Dense from = z;
      from.data = const_cast<void*>(r.data);
      inverse_->apply(from, z, stream);
    };
    of_solver_.own_preconditioner = std::move(own);
    solver_ = std::make_unique<Solver>(*matrix_, of_solver_);
    b_.emplace(*matrix_, VectorLayout::rows, ValueType::f64, kPanel);
    x_.emplace(*matrix_, VectorLayout::rows, ValueType::f64, kPanel);
  }

  void solve(double* panel) override {
    const std::int64_t entries = p_.local_rows() * kPanel;
    std::copy_n(panel, entries, static_cast<double*>(b_->view().data));
    x_->fill(0, p_.k().context().stream());
    const SolveResult result = solver_->solve(*b_, *x_);
    ranks().run_agreed([&] { require_solved(result); });
    std::copy_n(static_cast<const double*>(x_->view().data), entries, panel);
    p_.clear_held(panel);
    ++solves_, iterations_ += result.iterations, most_ = std::max(most_, result.iterations);
  }

  void sharpen() override {
    of_solver_.rtol = std::max(*of_solver_.rtol / 100, std::min(asked_, kLeastTolerance));
    solver_ = std::make_unique<Solver>(*matrix_, of_solver_);
  }

  const char* name() const override { return "minres"; }
  std::string describe() const override {
    return fmt::format(
        "MINRES, {} iterations in {} solves of {} columns, at most {} in one, with multigrid of K + |σ| M: {}",
        human_count(iterations_), human_count(solves_), kPanel, human_count(most_), inverse_->describe());
  }
  std::string why_not_counted() const override {
    return fmt::format(
        "without factors nothing tells whether eigenvalues are missing; blocks of {} find those that come up "
        "to {} times",
        kPanel, kPanel);
  }

 private:
  static constexpr std::int64_t kMostIterations = 2000;
  static constexpr double kLeastTolerance = 1e-14;

  Communicator& ranks() const { return p_.k().context().communicator(); }
  void require_solved(const SolveResult& result) const {
    for (const SolvedColumn& column : result.columns) {
      if (converged(column.reason) || column.reason == SolveReason::diverged_attainable_accuracy ||
          column.true_residual <= asked_ * column.norm_of_b)
        continue;
      throw Error(
          ErrorKind::usage,
          fmt::format("MINRES did not solve (K - σM) x = b: {} after {} iterations, at a residual of {:.1e} of b. The "
                      "shift lies deep in the spectrum, or is an eigenvalue; take factors (MUMPS), or a shift with "
                      "fewer eigenvalues below it",
                      result.explanation(column), column.iterations, column.true_residual / column.norm_of_b),
          "inner");
    }
  }

  Pencil& p_;
  std::unique_ptr<DistributedMatrix> matrix_, definite_;
  double asked_;             ///< of residuals, as a part of right-hand sides
  SolverOptions of_solver_;  ///< its tolerance becomes smaller by sharpen()
  std::unique_ptr<Preconditioner> inverse_;
  std::unique_ptr<Solver> solver_;
  std::optional<DistributedVector> b_, x_;
  std::int64_t solves_ = 0, iterations_ = 0, most_ = 0;
};

}  // namespace

std::unique_ptr<ShiftedInverse> make_shifted_minres(Pencil& pencil, double sigma, const PairOptions& options) {
  return std::make_unique<ShiftedMinres>(pencil, sigma, options);
}

}  // namespace shardmat::modes
