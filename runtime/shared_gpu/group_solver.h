// Solves A·X = B for a matrix on any number of ranks a device (group_matrix.h).
//
// Threads: as GroupMatrix. The constructor, refresh() and solve() are collective.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "runtime/shared_gpu/group_matrix.h"
#include "runtime/solvers/multigrid/report.h"
#include "runtime/solvers/solver.h"

namespace shardmat {

class GroupSolver {
 public:
  /// As Solver. Calls `give` once per rank; its error reaches all ranks. The matrix must outlive the solver. Coordinates and
  /// near-null vectors are those of the rows that this rank gave, in their order. Throws Error(usage) if a preconditioner of
  /// the program meets feeders, which sleep during a solve.
  GroupSolver(GroupMatrix& matrix, const std::function<SolverOptions()>& give);

  /// Takes the new values of the matrix into the preconditioner.
  void refresh();
  /// Solves from the x at hand. b and x: own_rows() × columns, of any type and order, copied.
  /// The result is the same on all ranks. On feeders, control.monitor and control.stop are called about ten times a second
  /// and at the end, with the last iteration and without true norms; control.progress is not called.
  SolveResult solve(const std::function<ConstDense()>& b, const std::function<Dense()>& x, const SolveControl& control = {});

  /// z = M·r, as Solver::precondition(): own_rows() × columns, as b and x of solve().
  void precondition(const std::function<ConstDense()>& r, const std::function<Dense()>& z);

  const SolverOptions& options() const { return options_; }
  /// The levels of multigrid, on all ranks; null: the preconditioner is another one.
  const MultigridReport* multigrid() const { return multigrid_ ? &*multigrid_ : nullptr; }
  /// The solver of the owners; null on a feeder.
  Solver* solver() { return solver_ ? &*solver_ : nullptr; }
  const Solver* solver() const { return solver_ ? &*solver_ : nullptr; }

 private:
  void make();
  void note_multigrid();
  std::string answer() const;
  void take_answer(const std::string& text);
  void precondition_own(const ConstDense& r, const Dense& z);
  SolveResult run(const ConstDense& b, const Dense& x, const SolveControl& control);

  GroupMatrix& matrix_;
  SolverOptions options_;
  std::optional<MultigridReport> multigrid_;
  std::optional<Solver> solver_;
  std::optional<DistributedVector> b_, x_;
};

}  // namespace shardmat
