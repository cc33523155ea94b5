// Jobs that solve A·X = B. Their solvers stay with the matrix.
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/service/engine/kind_of_job.h"
#include "runtime/service/engine/running_job.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/loop/solve_result.h"
#include "runtime/solvers/solver_settings.h"

namespace shardmat::service {
namespace {

using nlohmann::ordered_json;

/// The solver of a job. One that was left amid its iterations, or could not go on, is not to be relied on.
class UsedSolver {
 public:
  UsedSolver(ResidentSolvers& solvers, const std::string& settings, std::int64_t columns, const RunningJob& job)
      : solvers_(solvers), job_(job), use_(solvers.use(settings, columns)) {}
  ~UsedSolver() { spoilt_ || job_.is_abandoned() ? solvers_.drop(use_.solver) : solvers_.release(use_.solver); }
  UsedSolver(const UsedSolver&) = delete;
  UsedSolver& operator=(const UsedSolver&) = delete;

  Solver& operator*() const { return *use_.solver; }
  bool was_there() const { return use_.resident; }
  void spoil() { spoilt_ = true; }

 private:
  ResidentSolvers& solvers_;
  const RunningJob& job_;
  ResidentSolvers::Use use_;
  bool spoilt_ = false;
};

class SolveWork final : public JobWork {
 public:
  explicit SolveWork(JobInputs inputs)
      : settings_(std::move(inputs.settings)),
        solvers_(inputs.matrix.solvers()),
        b_(std::move(*inputs.b)),
        x_(inputs.guess ? std::move(*inputs.guess)
                        : DistributedVector(inputs.matrix.y_rows(), inputs.matrix.type(), inputs.columns)) {}

  JobResult run(RunningJob& job) override {
    UsedSolver used(solvers_, settings_, x_.columns(), job);
    Solver& solver = *used;
    const auto facts = [&] {
      ordered_json all{{"method", solver.options().solver}, {"preconditioner", solver.options().preconditioner}};
      if (const std::string note = solver.preconditioner().describe(); !note.empty()) all["note"] = note;
      all["resident"] = used.was_there();
      return all.dump();
    };
    job.set_up(facts());
    SolveControl control;
    control.monitor = [&](std::int64_t iteration, const std::vector<double>& norms, const std::vector<double>&) {
      job.note(iteration, norms);
    };
    control.pause = [&] {
      solver.product().wait(x_.context().stream());
      return job.pause();
    };
    const SolveResult result = [&] {
      try {
        return solver.solve(b_, x_, control);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) used.spoil();  // NaN in b, say, is found before anything changes
        throw;
      }
    }();
    JobResult told{{}, facts()};
    for (const SolvedColumn& column : result.columns) told.columns.push_back(describe(column, result));
    return told;
  }

  const DistributedVector* x() const override { return &x_; }
  bool ends_soon() const override { return true; }

 private:
  static JobColumn describe(const SolvedColumn& column, const SolveResult& result) {
    const ordered_json facts{{"reason", name(column.reason)},
                             {"converged", converged(column.reason)},
                             {"iterations", column.iterations},
                             {"norm_of_b", column.norm_of_b},
                             {"residual", column.residual},
                             {"true_residual", column.true_residual},
                             {"backward_error", column.backward_error}};
    const bool good = converged(column.reason);
    return {good, column.iterations, column.norm_of_b > 0 ? column.true_residual / column.norm_of_b : 0, facts.dump(),
            good ? "" : std::string(result.explanation(column))};
  }

  std::string settings_;
  ResidentSolvers& solvers_;
  DistributedVector b_, x_;
};

}  // namespace

KindOfJob solve_kind() {
  KindOfJob kind{"solve", {}, [](JobInputs inputs) -> std::unique_ptr<JobWork> {
                   return std::make_unique<SolveWork>(std::move(inputs));
                 }};
  for (const SolverSetting& setting : solver_settings()) kind.settings.push_back(setting.name);
  return kind;
}

}  // namespace shardmat::service
