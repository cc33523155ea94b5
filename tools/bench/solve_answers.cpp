#include "tools/bench/solve_answers.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "comm/long_wait.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/solver.h"
#include "tools/bench/matrices.h"
#include "tools/bench/peers/resident_memory.h"
#include "tools/bench/textbook_cg.h"

namespace shardmat::tools {
namespace {

constexpr double kNewValues = 2;  ///< factor of a refresh: as exact, and the pattern stays

double now(bool cpu_clock) {
  timespec time{};
  ::clock_gettime(cpu_clock ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class OwnSolving final : public Solving {
 public:
  OwnSolving(SolveSystem& system, const SolveRequest& request, const std::string& preconditioner)
      : Solving("Shardmat " + preconditioner, preconditioner, true), system_(system), request_(request) {}

  std::optional<TimedAnswer> answer(bool again) override {
    TimedAnswer answer;
    system_.scale_values(1);
    system_.take_values();
    system_.scale_values(kNewValues);
    const std::int64_t before = peers::resident_bytes();
    std::unique_ptr<Solver> solver;
    answer.set_up = timed([&] { solver = std::make_unique<Solver>(system_.matrix(), options()); });
    answer.bytes = std::max<std::int64_t>(0, peers::resident_bytes() - before);
    if (system_.context().device().backend != Backend::host) answer.bytes = solver->device_bytes();
    answer.bytes = system_.context().communicator().all_reduce(answer.bytes, Reduction::sum);
    answer.solve = timed_solve(*solver, 1, answer);
    answer.refresh = timed([&] {
      system_.take_values();
      solver->refresh();
    });
    if (again) timed_solve(*solver, kNewValues, answer);
    detail_ = solver->preconditioner().describe();
    return answer;
  }

 private:
  SolverOptions options() const {
    SolverOptions options;
    options.solver = request_.solver, options.preconditioner = preconditioner();
    if (options.preconditioner == "multigrid") options.preconditioning.multigrid.coordinates = system_.coordinates();
    options.rtol = request_.rtol, options.max_iterations = request_.most;
    return options;
  }

  /// Seconds of the slowest rank.
  template <class F>
  double timed(const F& work) {
    Communicator& communicator = system_.context().communicator();
    communicator.barrier();
    const double start = now(request_.cpu_clock);
    work();
    system_.context().stream().synchronize();
    return communicator.all_reduce(now(request_.cpu_clock) - start, Reduction::max);
  }

  double timed_solve(Solver& solver, double factor, TimedAnswer& answer) {
    system_.x().fill(0, system_.context().stream());
    SolveResult result;
    const double seconds = timed([&] { result = solver.solve(system_.b(), system_.x()); });
    const SolvedColumn& column = result.columns.front();
    if (factor == 1) take_history(column);
    answer.iterations = result.iterations;
    answer.claims = answer.claims && result.converged();
    answer.residual =
        std::max(answer.residual, system_.relative_residual(factor).value_or(column.true_residual / column.norm_of_b));
    return seconds;
  }

  void take_history(const SolvedColumn& column) {
    history_ = column.history;
    for (double& norm : history_) norm /= column.norm_of_b;
  }

  SolveSystem& system_;
  const SolveRequest& request_;
};

class PeerSolving final : public Solving {
 public:
  PeerSolving(SolveSystem& system, const SolveRequest& request, const PeerName& peer, PeerProgram* process)
      : Solving(peer.heading, peer.preconditioner, false),
        system_(system),
        request_(request),
        peer_(peer.name),
        process_(process) {}

  std::optional<TimedAnswer> answer(bool again) override {
    Communicator& communicator = system_.context().communicator();
    communicator.barrier();
    const LongWait wait(communicator);
    TimedAnswer answer;
    communicator.run_agreed([&] {
      if (communicator.rank() == 0) ask(answer, again);
    });
    communicator.broadcast(std::span(&answer, 1));
    refused_ = communicator.broadcast(refused_);
    detail_ = communicator.broadcast(detail_);
    return refused_.empty() ? std::optional(answer) : std::nullopt;
  }

 private:
  /// Keeps a matrix in the peer program no longer than this.
  void ask(TimedAnswer& answer, bool again) {
    const PeerProgram::Prepared prepared = process_->prepare(peer_);
    refused_ = prepared.refused, detail_ = prepared.detail;
    if (!refused_.empty()) return;
    const auto take = [&](const PeerProgram::Timed& timed) {
      if (refused_.empty()) refused_ = timed.refused;
      return timed;
    };
    const auto set_up = take(process_->set_up(request_.solver, request_.rtol, request_.most));
    answer.set_up = set_up.seconds, answer.bytes = set_up.number;
    if (refused_.empty()) answer.solve = solve(take, 1, answer);
    if (refused_.empty()) answer.refresh = take(process_->refresh()).seconds;
    if (refused_.empty() && again) solve(take, kNewValues, answer);
    process_->drop();
  }

  template <class F>
  double solve(const F& take, double factor, TimedAnswer& answer) {
    SharedOperands& operands = *system_.operands();
    operands.poison_y();
    const auto solved = take(process_->solve());
    if (!solved.refused.empty()) return 0;
    process_->store_result();
    if (factor == 1) take_history();
    answer.iterations = solved.number;
    const double residual = operands.relative_residual(factor);
    answer.residual = residual <= answer.residual ? answer.residual : residual;  // also NaN
    return solved.seconds;
  }

  void take_history() {
    history_ = process_->history();
    if (history_.empty()) return;
    const double norm_of_b = history_.front();  // x begins at 0
    for (double& norm : history_) norm /= norm_of_b;
  }

  SolveSystem& system_;
  const SolveRequest& request_;
  std::string peer_;
  PeerProgram* process_;
};

class TextbookSolving final : public Solving {
 public:
  TextbookSolving(std::unique_ptr<TextbookCg> cg, const SolveRequest& request, const std::string& preconditioner)
      : Solving("cuSPARSE + cuBLAS", preconditioner, false), cg_(std::move(cg)), request_(request) {}

  std::optional<TimedAnswer> answer(bool) override {
    const TextbookCg::Solved solved = cg_->solve(request_.rtol, request_.most);
    TimedAnswer answer;
    answer.solve = solved.seconds, answer.iterations = solved.iterations, answer.residual = solved.residual;
    return answer;
  }

 private:
  std::unique_ptr<TextbookCg> cg_;
  const SolveRequest& request_;
};

}  // namespace

std::unique_ptr<Solving> make_own_solving(SolveSystem& system, const SolveRequest& request,
                                          const std::string& preconditioner) {
  return std::make_unique<OwnSolving>(system, request, preconditioner);
}

std::unique_ptr<Solving> make_peer_solving(SolveSystem& system, const SolveRequest& request, const PeerName& peer,
                                           PeerProgram* process) {
  return std::make_unique<PeerSolving>(system, request, peer, process);
}

std::unique_ptr<Solving> make_textbook_solving(SolveSystem& system, const SolveRequest& request, const std::string& matrix,
                                               const std::string& preconditioner) {
  if (request.solver != "cg") return nullptr;
  const bool known = preconditioner == "none" || preconditioner == "jacobi" || preconditioner == "block_jacobi";
  if (!known || system.context().device().backend == Backend::host) return nullptr;
  auto cg = make_textbook_cg(load_matrix(matrix, {}), preconditioner, static_cast<int>(system.node_size()),
                             system.context().stream());
  return cg ? std::make_unique<TextbookSolving>(std::move(cg), request, preconditioner) : nullptr;
}

}  // namespace shardmat::tools
