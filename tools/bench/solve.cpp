// `shardmat bench solve`: our solvers against conjugate gradients of cuSPARSE and cuBLAS calls, or PETSc's on the host, and
// against the same solver with plain CSR inside.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/placement.h"
#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "runtime/context/context_scope.h"
#include "runtime/solvers/loop/method.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "tools/bench/bench.h"
#include "tools/bench/machine.h"
#include "tools/bench/matrices.h"
#include "tools/bench/options.h"
#include "tools/bench/outputs.h"
#include "tools/bench/peer_pairs.h"
#include "tools/bench/peer_program.h"
#include "tools/bench/result_table.h"
#include "tools/bench/solve_trial.h"
#include "tools/bench/textbook_cg.h"
#include "tools/cli/checks.h"
#include "tools/cli/environment.h"
#include "tools/cli/report_option.h"
#include "tools/cli/run_ranks.h"

namespace shardmat::tools {
namespace {

constexpr const char* kPlotScript = "plot_solve.py";

struct UsualCase {
  const char *name, *solver, *preconditioner;
  std::int64_t columns;
  const char* matrices[3];  ///< by Size
};
constexpr UsualCase kUsualCases[] = {
    {"Poisson", "cg", "none", 1, {"poisson27:n=12", "poisson27:n=64", "poisson27:n=128"}},
    {"Poisson", "cg", "jacobi", 1, {"poisson27:n=12", "poisson27:n=64", "poisson27:n=128"}},
    {"elasticity",
     "cg",
     "jacobi",
     1,
     {"elasticity:n=8,clamp=0.05", "elasticity:n=40,clamp=0.01", "elasticity:n=96,clamp=0.01"}},
    {"elasticity",
     "cg",
     "block_jacobi",
     1,
     {"elasticity:n=8,clamp=0.05", "elasticity:n=40,clamp=0.01", "elasticity:n=64,clamp=0.01"}},
    {"elasticity",
     "cg",
     "jacobi",
     8,
     {"elasticity:n=8,clamp=0.05", "elasticity:n=24,clamp=0.02", "elasticity:n=64,clamp=0.01"}},
    {"Poisson", "gmres", "none", 1, {"poisson27:n=12", "poisson27:n=64", "poisson27:n=128"}},
};

struct Options {
  std::vector<std::string> matrices;
  std::string size = "auto", backend = "auto", solver = "cg", preconditioner = "jacobi";
  SolveLimits limits;
  int repetitions = 5, threads = 0;
  bool peers = true;
  double timeout = 300;
  Outputs outputs;
};

/// PETSc's solvers, in processes of their own that are older than our MPI: mpirun cannot be started from a rank.
struct Peers {
  std::unique_ptr<PeerProgram> process;
  std::vector<PeerName> names;
  std::string missing;  ///< a note why there are none
};

Peers start_peers(int threads) {
  Peers peers;
  if (!std::filesystem::exists(peer_program_path())) {
    peers.missing = "without PETSc: it was not found when Shardmat was built (package petsc-dev)";
    return peers;
  }
  std::vector<std::string> command{peer_program_path()};
  if (threads > 1) command = {"mpirun", "-n", std::to_string(threads), "--bind-to", "none", peer_program_path()};
  peers.process = std::make_unique<PeerProgram>(command, threads, 1, false);
  for (const PeerName& peer : peers.process->list())
    if (peer.solves) peers.names.push_back(peer);
  return peers;
}

/// Who solves: seconds of an iteration in each round, and iterations.
struct Timed {
  std::string name;
  std::function<bool(Timed&)> solve;  ///< one round; false if it does not solve this system
  std::vector<double> seconds;
  std::int64_t iterations = 0;
  double residual = 0;

  double median() const { return median_of(seconds); }
  void add(double all, std::int64_t took) {
    iterations = took;
    seconds.push_back(took > 0 ? all / static_cast<double>(took) : 0);
  }
};

/// Values that the passes of an iteration read and write for each row and column, beyond those of the product; nothing where
/// nobody counted them. `block`: rows of a block of block_jacobi; `sums_dot`: the product sums p·Ap.
std::optional<double> vector_values(const SolveCase& one, double block, bool sums_dot, bool on_host) {
  if (one.solver == "cg") {
    const double of_dot = sums_dot ? 0 : 2;
    if (one.preconditioner == "none") return 8 + of_dot;
    if (one.preconditioner == "jacobi") return 10 + of_dot;
    if (one.preconditioner == "block_jacobi") return 12 + block + of_dot;
  }
  // On a GPU: 30 steps over 1 … 30 vectors, which each of three passes reads; then a pass over all of them and the residual.
  if (one.solver == "gmres" && !on_host && one.preconditioner == "none") return 3 * 15.5 + 5 + (30 + 2 + 3) / 30.0;
  return std::nullopt;
}

class Run {
 public:
  Run(const Options& options, const Peers& peers, Communicator& communicator)
      : options_(options),
        peers_(peers),
        communicator_(communicator),
        context_(communicator, parse_backend_choice(options.backend), options.threads),
        scope_(context_) {
    if (prints() || writes()) machine_ = examine_machine(on_host() ? "host" : "cuda");
    copy_ = context_.copy_bandwidth() * communicator.size();
    if (!peers.missing.empty()) table_.notes.push_back(peers.missing);
    if (prints()) fmt::print("{}", machine_->text());
    table_.title = "Time of one iteration, from the whole solve";
    table_.columns = {{"matrix", "matrix"},        {"rows", "rows"},
                      {"nnz", "nonzeros"},         {"solver", "solver"},
                      {"columns", "columns"},      {"iterations", "iterations"},
                      {"microseconds", "µs"},      {"product", "product"},
                      {"share", "of copy"},        {"kernel", "kernel"},
                      {"csr", "CSR inside"},       {"peer", "peer"},
                      {"peer_microseconds", "µs"}, {"peer_iterations", "iterations"},
                      {"ratio", "ratio"},          {"ratio_low", "from"},
                      {"ratio_high", "to"}};
  }

  int operator()() {
    const GrowingReport file(writes() ? options_.outputs : Outputs{}, kPlotScript);
    for (const SolveCase& one : cases()) {
      measure(one);
      if (writes()) file.save([&] { return json(); });
    }
    if (prints()) fmt::print("{}", table_.text());
    if (writes()) file.finish(json());
    return exit_code(wrong_);
  }

 private:
  bool on_host() const { return context_.device().backend == Backend::host; }
  bool writes() const { return communicator_.rank() == 0; }
  bool prints() const { return writes() && options_.outputs.json != "-"; }

  std::vector<SolveCase> cases() const {
    std::vector<SolveCase> cases;
    if (!options_.matrices.empty()) {
      for (const std::string& matrix : options_.matrices)
        cases.push_back({matrix, matrix, options_.solver, options_.preconditioner, 1});
      return cases;
    }
    const auto size = static_cast<std::size_t>(options_.size != "auto" ? parse_size(options_.size)
                                               : on_host()             ? Size::small
                                                                       : Size::full);
    for (const UsualCase& usual : kUsualCases)
      cases.push_back({usual.name, usual.matrices[size], usual.solver, usual.preconditioner, usual.columns});
    return cases;
  }

  Timed ours(const std::string& name, SolveTrial& trial) {
    return {name,
            [&trial, this](Timed& timed) {
              const SolveResult result = trial.solve();
              timed.add(result.seconds, result.iterations);
              timed.residual = 0;
              for (const SolvedColumn& column : result.columns) {
                timed.residual = std::max(timed.residual, column.true_residual / column.norm_of_b);
                wrong_ += column.reason != SolveReason::converged_rtol && column.reason != SolveReason::diverged_iterations;
              }
              return true;
            },
            {},
            0,
            0};
  }
  Timed textbook(TextbookCg& cg) const {
    return {"cuSPARSE + cuBLAS",
            [&cg, this](Timed& timed) {
              const auto solved = cg.solve(options_.limits.rtol, options_.limits.most);
              timed.add(solved.seconds, solved.iterations);
              timed.residual = solved.residual;
              return true;
            },
            {},
            0,
            0};
  }
  /// The peer keeps its matrix until drop().
  Timed petsc(const PeerName& peer, const SolveCase& one) {
    return {peer.heading,
            [this, &peer, &one](Timed& timed) {
              if (!peers_.process->prepare(peer.name).refused.empty()) return false;
              const auto solved =
                  peers_.process->solve(one.solver, one.preconditioner, options_.limits.rtol, options_.limits.most);
              peers_.process->drop();
              if (!solved.refused.empty()) return false;
              timed.add(solved.seconds, solved.iterations);
              timed.residual = solved.residual;
              return true;
            },
            {},
            0,
            0};
  }

  void measure(const SolveCase& one) {
    SolveTrial fastest(one, "auto", options_.limits, context_);
    std::vector<Timed> all{ours("ours", fastest)};
    std::unique_ptr<SolveTrial> plain;
    if (one.columns == 1) {
      plain = std::make_unique<SolveTrial>(one, on_host() ? "csr_host" : "csr_vector", options_.limits, context_);
      all.push_back(ours("CSR inside", *plain));
    }
    std::unique_ptr<TextbookCg> loop;
    std::unique_ptr<SharedOperands> operands;
    const std::size_t first_peer = all.size();
    if (options_.peers && communicator_.size() == 1 && one.columns == 1) {
      if (peers_.process) {
        const HostCsr matrix = load_matrix(one.matrix, {});
        operands = std::make_unique<SharedOperands>(matrix.view(), ValueType::f64, RightHandSides{},
                                                    [](std::int64_t) { return 1.0; });
        peers_.process->open(*operands);
        for (const PeerName& peer : peers_.names) all.push_back(petsc(peer, one));
      } else if (!on_host() && one.solver == "cg") {
        loop = make_textbook_cg(load_matrix(one.matrix, {}), one.preconditioner, static_cast<int>(fastest.node_block_size()),
                                context_.stream());
        if (loop) all.push_back(textbook(*loop));
      }
    }
    for (int round = 0; round < options_.repetitions; ++round)
      for (std::size_t i = 0; i < all.size(); ++i) {
        Timed& timed = all[(i + static_cast<std::size_t>(round)) % all.size()];
        if (timed.solve && !timed.solve(timed)) timed.solve = nullptr;
      }
    const Timed* peer = nullptr;
    for (std::size_t i = first_peer; i < all.size(); ++i)
      if (!all[i].seconds.empty() && (peer == nullptr || all[i].median() < peer->median())) peer = &all[i];
    add_row(one, fastest, all.front(), plain ? &all[1] : nullptr, peer);
  }

  static Cell microseconds(double seconds) { return Cell::figure(1e6 * seconds, 1); }

  void add_row(const SolveCase& one, SolveTrial& trial, const Timed& ours, const Timed* plain, const Timed* peer) {
    const double product = trial.product_seconds();  // collective
    const double block = static_cast<double>(trial.node_block_size());
    const auto matrix_bytes = static_cast<double>(communicator_.all_reduce(trial.matrix_bytes(), Reduction::sum));
    std::vector<Cell> row{Cell::word(one.matrix),
                          Cell::count(trial.rows()),
                          Cell::count(trial.nnz()),
                          Cell::word(one.preconditioner == "none" ? one.solver : one.solver + ", " + one.preconditioner),
                          Cell::count(one.columns),
                          Cell::count(ours.iterations),
                          microseconds(ours.median()),
                          microseconds(product),
                          Cell::none(),
                          Cell::word(trial.kernel()),
                          plain == nullptr ? Cell::none() : microseconds(plain->median())};
    if (const auto values = vector_values(one, block, trial.sums_dot(), on_host())) {
      const double bytes = matrix_bytes + (2 + *values) * 8 * static_cast<double>(trial.rows() * one.columns);
      row[8] = Cell::share_of_copy(bytes / copy_ / ours.median());
    }
    if (peer == nullptr) {
      row.insert(row.end(), 6, Cell::none());
    } else {
      std::vector<double> ratios;
      for (std::size_t i = 0; i < peer->seconds.size(); ++i) ratios.push_back(peer->seconds[i] / ours.seconds[i]);
      const MedianInterval ratio = median_interval(ratios);
      for (const Cell& cell : {Cell::word(peer->name), microseconds(peer->median()), Cell::count(peer->iterations),
                               Cell::figure(ratio.median, 2), Cell::figure(ratio.low, 2), Cell::figure(ratio.high, 2)})
        row.push_back(cell);
    }
    table_.rows.push_back(std::move(row));
  }

  nlohmann::ordered_json json() const {
    return {{"command", command_line()},           {"machine", machine_->json()},  {"ranks", communicator_.size()},
            {"threads", context_.threads()},       {"rtol", options_.limits.rtol}, {"max_iterations", options_.limits.most},
            {"repetitions", options_.repetitions}, {"table", table_.json()}};
  }

  const Options& options_;
  const Peers& peers_;
  Communicator& communicator_;
  Context context_;
  ContextScope scope_;
  std::optional<Machine> machine_;
  double copy_ = 0;  ///< bytes a second of all ranks
  ResultTable table_;
  std::int64_t wrong_ = 0;
};

int run(const Options& options, const Peers& peers, Communicator& communicator) {
  communicator.run_agreed([&] {
    if (communicator.rank() == 0) require_outputs(options.outputs, kPlotScript, options.matrices);
  });
  return Run(options, peers, communicator)();
}

}  // namespace

std::function<int()> add_bench_solve(const CommandLine& bench) {
  const CommandLine app = bench.add_subcommand(
      "solve", "Solvers: time of an iteration, with plain CSR inside, and of PETSc or a loop of cuSPARSE and cuBLAS calls");
  auto o = std::make_shared<Options>();
  app.add_option("matrix", o->matrices, "matrix files or generators (default: Poisson and elasticity problems)")
      ->type_name("MATRIX");
  app.add_option("--size", o->size, "size of the default problems; auto is full on a GPU, small on the host")
      ->check(one_of({"auto", "tiny", "small", "full"}))
      ->capture_default_str();
  std::vector<std::string> solvers, preconditioner_names;
  for (const MethodEntry& method : methods()) solvers.emplace_back(method.name);
  for (const PreconditionerEntry& entry : preconditioners()) preconditioner_names.emplace_back(entry.name);
  app.add_option("--solver", o->solver, "of the matrices named; the peers solve with cg and gmres")
      ->check(one_of(solvers))
      ->capture_default_str();
  app.add_option("--preconditioner", o->preconditioner,
                 "of the matrices named; the peers take none, jacobi and block_jacobi")
      ->check(one_of(preconditioner_names))
      ->capture_default_str();
  app.add_option("--rtol", o->limits.rtol, "a solve ends when the residual is X times that of x = 0; 0: at --max-iterations")
      ->check(finite_number())
      ->capture_default_str();
  app.add_option("--max-iterations", o->limits.most, "a solve ends after N iterations")
      ->check(whole_number(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--repetitions", o->repetitions, "solves of each solver, in turn; medians are shown")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  app.add_flag("!--no-peers", o->peers, "measure Shardmat alone");
  add_backend_option(app, o->backend);
  app.add_option("--threads", o->threads,
                 "host threads of each rank (default: its share of the cores); PETSc runs on as many ranks")
      ->check(whole_number(1, 4096));
  app.add_option("--timeout", o->timeout, "stop if a rank has not answered for X seconds")->capture_default_str();
  add_json_option(app, o->outputs.json, ", anew after every row");
  app.add_option("--plot", o->outputs.plot, "draw the times to FILE (.svg, .png or .pdf; needs python3-matplotlib)")
      ->check(plot_name())
      ->type_name("FILE");
  app.footer(
      "\nColumns: \"product\" is the time of one product; \"of copy\" how much of the\nmemory's copy bandwidth an iteration "
      "reaches with the bytes that its passes must\nmove; \"CSR inside\" the same solver on plain CSR. The peer is PETSc's "
      "KSP "
      "on the\nhost (the faster one of AIJ and BAIJ), on a GPU a loop of cuSPARSE and cuBLAS\ncalls. Ratio: the peer's time "
      "of "
      "an iteration over ours, the median with its\n90 % interval.\n"
      "\nExamples:\n  shardmat bench solve --json solve.json --plot solve.svg\n"
      "  shardmat bench solve bar.h5 --preconditioner block_jacobi\n  mpirun -n 2 shardmat bench solve --no-peers\n");
  return [app, o] {
    Peers peers;
    if (o->peers && launch().size == 1 && (o->backend == "host" || (o->backend == "auto" && cuda_device_count() == 0))) {
      let_waiting_threads_sleep();
      if (o->threads == 0) o->threads = threads_of_environment(static_cast<int>(std::thread::hardware_concurrency()));
      peers = start_peers(o->threads);
    }
    return run_ranks(app, o->timeout, [&](Communicator& communicator) { return run(*o, peers, communicator); });
  };
}

}  // namespace shardmat::tools
