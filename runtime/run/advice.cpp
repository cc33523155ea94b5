#include "runtime/run/advice.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/timer.h"
#include "runtime/context/context.h"
#include "runtime/context/context_scope.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/loop/preconditioner.h"

namespace shardmat {
namespace {

constexpr std::int64_t kSlow = 200;  // iterations
// Half of a tenth of the solve's time is for making the preconditioner, half for iterations that take 1.3 times as long.
constexpr double kHalf = 0.05, kDearer = 1.3;
constexpr double kAlways = 0.005;     // seconds that may always be taken to make it
constexpr double kMostSeconds = 0.1;  // of a trial, if a tenth of the solve's time is less
constexpr double kFind = 20e-9;       // seconds a nonzero, to find the diagonal
constexpr std::int64_t kFewest = 5;   // iterations of a trial that say something
constexpr double kHelps = 1.3, kReduces = 0.9;

const SolvedColumn& slowest(const SolveResult& result) {
  return *std::max_element(result.columns.begin(), result.columns.end(),
                           [](const SolvedColumn& a, const SolvedColumn& b) { return a.iterations < b.iterations; });
}

/// The history of a column, of residuals as the method updates them, tells about the true ones.
bool is_true(const SolvedColumn& column) { return column.true_residual <= 2 * column.residual; }

bool deserves_advice(const SolvedColumn& column) {
  return is_true(column) && (converged(column.reason) || column.reason == SolveReason::diverged_iterations ||
                             column.reason == SolveReason::diverged_attainable_accuracy);
}

/// Seconds that making a preconditioner takes about, on the host, where the diagonal is looked for; of the slowest rank.
double set_up_seconds(const DistributedMatrix& matrix) {
  return matrix.context().communicator().all_reduce(kFind * static_cast<double>(matrix.local_nnz()), Reduction::max);
}

/// Compares the best residual of the trial with the iteration at which the solve reached it.
std::optional<Advice> compare(const std::vector<double>& solve, const std::vector<double>& trial) {
  const auto best = std::min_element(trial.begin(), trial.end());
  const auto iterations = best - trial.begin();
  if (iterations < kFewest || !(*best <= kReduces * trial.front())) return std::nullopt;
  const auto reached = std::find_if(solve.begin(), solve.end(), [&](double norm) { return norm <= *best; });
  Advice advice;
  advice.iterations = iterations;
  advice.at_least = reached == solve.end();
  advice.instead_of = std::min<std::int64_t>(reached - solve.begin(), std::ssize(solve) - 1);
  if (static_cast<double>(advice.instead_of) < kHelps * static_cast<double>(iterations)) return std::nullopt;
  return advice;
}

}  // namespace

bool may_advise(const SolverOptions& options) {
  return !options.own_preconditioner && options.residual_norm == ResidualNorm::unpreconditioned &&
         (options.preconditioner == "none" || options.preconditioner == "jacobi");
}

AdviceTrial advise(Solver& solver, DistributedMatrix& matrix, const DistributedVector& b, const VectorSource& guess,
                   const SolveResult& result, const SolveControl& control) {
  const ContextScope scope(matrix.context());
  AdviceTrial found;
  const SolvedColumn& column = slowest(result);
  const auto place = static_cast<std::size_t>(&column - result.columns.data());
  if (column.iterations < kSlow || !deserves_advice(column) || !may_advise(solver.options())) return found;
  const Timer timer;
  const double seconds = matrix.context().communicator().all_reduce(result.seconds, Reduction::max);
  if (set_up_seconds(matrix) > std::max(kAlways, kHalf * seconds)) return found;
  const auto iterations = static_cast<std::int64_t>(kHalf / kDearer * static_cast<double>(column.iterations));
  try {
    PreconditionerOptions preconditioning = solver.options().preconditioning;
    preconditioning.node_block_size = static_cast<int>(block_jacobi_size(matrix));
    const std::string name = preconditioning.node_block_size > 1 ? "block_jacobi" : "jacobi";
    if (name == solver.options().preconditioner) return found;
    DistributedVector x(matrix, VectorLayout::rows, b.type(), b.columns());
    x.read(guess, matrix.context().stream());
    SolveControl limits;
    const double most = std::max(kMostSeconds, 2 * kHalf * seconds);
    limits.stop = [&] { return timer.seconds() > most || (control.stop && control.stop()); };
    found.tried = true;
    const Solver::Trial trial = solver.try_preconditioner(name, preconditioning, iterations, b, x, limits);
    const SolvedColumn& tried = trial.result.columns[place];
    if (is_true(tried)) found.advice = compare(column.history, tried.history);
    if (found.advice) found.advice->preconditioner = name, found.advice->note = trial.note;
  } catch (const AgreedError& error) {  // all ranks are here, and the solve's result is as it was
    found.failure = error.what();
  }
  return found;
}

}  // namespace shardmat
