// `shardmat bench solve`: how long an answer to A·x = b takes from nothing: our solvers against multigrid of PETSc and hypre
// on the host, or a loop of cuSPARSE and cuBLAS calls on a GPU, in turns.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
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
#include "tools/bench/solve_answers.h"
#include "tools/bench/solve_peers.h"
#include "tools/bench/solve_system.h"
#include "tools/bench/solve_table.h"
#include "tools/cli/checks.h"
#include "tools/cli/environment.h"
#include "tools/cli/report_option.h"
#include "tools/cli/run_ranks.h"

namespace shardmat::tools {
namespace {

constexpr const char* kPlotScript = "plot_solve.py";

/// Discretised differential equations, clamped where they have to be.
constexpr MatrixClass kSystems[] = {
    {"Poisson, 7 points", {"poisson7:n=12,uniform", "poisson7:n=64,uniform", "poisson7:n=192,uniform"}},
    {"Poisson, 27 points", {"poisson27:n=10,uniform", "poisson27:n=64,uniform", "poisson27:n=128,uniform"}},
    {"elasticity",
     {"elasticity:n=7,uniform,clamp=0.01", "elasticity:n=32,uniform,clamp=0.01", "elasticity:n=64,uniform,clamp=0.01"}},
};

struct Options {
  std::vector<std::string> matrices, preconditioners;
  std::string coordinates, size = "auto", backend = "auto";
  SolveRequest request;
  int repetitions = 5, ranks = 0, threads = 0;
  bool peers = true;
  double timeout = 300;
  Outputs outputs;
};

/// One of the solvers of a system, with its answers so far.
struct Contestant {
  std::unique_ptr<Solving> solving;
  SolverAnswers got;
  std::optional<TimedAnswer> first;  ///< of the first round, which does not count
};

class Run {
 public:
  Run(const Options& options, SolvePeers& peers, Communicator& communicator)
      : options_(options),
        peers_(peers),
        communicator_(communicator),
        context_(communicator, parse_backend_choice(options.backend), options.threads),
        scope_(context_),
        table_(solve_table(options.request.rtol, options.request.cpu_clock)) {
    if (writes()) machine_ = examine_machine(on_host() ? "host" : "cuda");
    if (!peers.missing.empty() && on_host()) table_.notes.push_back(peers.missing);
    if (prints()) fmt::print("{}", machine_->text());
  }

  int operator()() {
    const GrowingReport file(options_.outputs, kPlotScript, communicator_);
    const Size size = options_.size != "auto" ? parse_size(options_.size) : on_host() ? Size::small : Size::full;
    for (const NamedMatrix& one : matrices_from(options_.matrices, kSystems, size)) {
      measure(one.argument);
      file.save([&] { return json(); });
    }
    if (prints()) fmt::print("{}", table_.text());
    if (writes()) file.finish(json());
    return exit_code(wrong_);
  }

 private:
  bool on_host() const { return context_.device().backend == Backend::host; }
  bool writes() const { return communicator_.rank() == 0; }
  bool prints() const { return writes() && options_.outputs.json != "-"; }

  std::vector<std::string> own_preconditioners() const {
    if (!options_.preconditioners.empty()) return options_.preconditioners;
    return on_host() ? std::vector<std::string>{"multigrid", "block_jacobi"}
                     : std::vector<std::string>{"block_jacobi", "jacobi"};
  }

  std::vector<Contestant> contestants(SolveSystem& system, const std::string& matrix) {
    std::vector<Contestant> all;
    const auto add = [&](std::unique_ptr<Solving> solving) {
      Contestant& one = all.emplace_back();
      one.got.name = solving->name(), one.got.preconditioner = solving->preconditioner(), one.got.own = solving->own();
      one.solving = std::move(solving);
    };
    const std::vector<std::string> own = own_preconditioners();
    for (const std::string& name : own) add(make_own_solving(system, options_.request, name));
    if (!options_.peers) return all;
    if (!peers_.names.empty()) {
      system.share();
      communicator_.run_agreed([&] {
        if (peers_.process) peers_.process->open(*system.operands());
      });
    }
    for (const PeerName& peer : peers_.names)
      if (std::find(own.begin(), own.end(), peer.preconditioner) != own.end())
        add(make_peer_solving(system, options_.request, peer, peers_.process.get()));
    for (const std::string& name : own)
      if (auto loop = make_textbook_solving(system, options_.request, matrix, name); loop && communicator_.size() == 1) {
        add(std::move(loop));
        all.back().got.sets_up = false;
      }
    return all;
  }

  /// Each answers once; of the alternatives that have one name, the fastest stays.
  void play_first_round(std::vector<Contestant>& all, const std::string& matrix) {
    std::map<std::string, std::string> refused;  // by name
    std::map<std::string, Contestant*> best;
    for (Contestant& one : all) {
      one.first = one.solving->answer(false);
      if (!one.first) {
        refused.emplace(one.got.name, one.solving->refused());
        continue;
      }
      Contestant*& place = best[one.got.name];
      const auto key = [&](const Contestant& c) {
        return std::pair(!is_right(c.first->residual, options_.request.rtol), c.first->whole());
      };
      if (place == nullptr || key(one) < key(*place)) place = &one;
    }
    for (const auto& [name, why] : refused)
      if (best.count(name) == 0) table_.notes.push_back(fmt::format("{}: without {}: {}.", matrix, name, why));
    std::vector<Contestant> kept;
    for (Contestant& one : all)
      if (one.first && best[one.got.name] == &one) kept.push_back(std::move(one));
    all = std::move(kept);
  }

  void measure(const std::string& matrix) {
    SolveSystem system(matrix, options_.coordinates, context_);
    std::vector<Contestant> all = contestants(system, matrix);
    play_first_round(all, matrix);
    for (int round = 0; round < options_.repetitions; ++round)
      for (std::size_t i = 0; i < all.size(); ++i) {
        Contestant& one = all[(i + static_cast<std::size_t>(round)) % all.size()];
        const TimedAnswer answer = one.solving->answer(round == 0).value_or(*one.first);
        if (one.got.own) wrong_ += answer.claims && !is_right(answer.residual, options_.request.rtol);
        one.got.answers.push_back(answer);
      }
    std::vector<SolverAnswers> solvers;
    for (Contestant& one : all) {
      one.got.detail = one.solving->detail(), one.got.history = one.solving->history();
      solvers.push_back(std::move(one.got));
    }
    add_rows(table_, matrix, system.matrix().rows(), system.matrix().nnz(), solvers, options_.request.rtol);
  }

  nlohmann::ordered_json json() const {
    const SolveRequest& request = options_.request;
    return {{"command", command_line()},
            {"machine", machine_->json()},
            {"ranks", communicator_.size()},
            {"threads", context_.threads()},
            {"clock", request.cpu_clock ? "cpu" : "wall"},
            {"method", request.solver},
            {"rtol", request.rtol},
            {"max_iterations", request.most},
            {"repetitions", options_.repetitions},
            {"table", table_.json()}};
  }

  const Options& options_;
  SolvePeers& peers_;
  Communicator& communicator_;
  Context context_;
  ContextScope scope_;
  std::optional<Machine> machine_;
  ResultTable table_;
  std::int64_t wrong_ = 0;
};

int run(const Options& options, SolvePeers& peers, Communicator& communicator) {
  communicator.run_agreed([&] {
    if (communicator.rank() == 0) require_outputs(options.outputs, kPlotScript, options.matrices);
  });
  return Run(options, peers, communicator)();
}

bool runs_on_host(const Options& options) {
  return options.backend == "host" || (options.backend == "auto" && cuda_device_count() == 0);
}

void require_sensible(const Options& o) {
  if (!o.coordinates.empty() && o.matrices.size() != 1)
    throw Error(ErrorKind::usage, "coordinates belong to one matrix; name this one", "coordinates");
  if (o.ranks > 0 && launch().size > 1 && !was_started_by_become_ranks())
    throw Error(ErrorKind::usage,
                "a number of ranks makes the benchmark start mpirun itself; leave out mpirun, or the number", "ranks");
}

/// On one process, or in a rank of mpirun.
int start(const CommandLine& app, Options& o) {
  require_sensible(o);
  const bool peers_wanted = o.peers && runs_on_host(o), in_mpirun = launch().size > 1;
  SolvePeers peers;
  if (peers_wanted && o.request.solver != "cg" && o.request.solver != "gmres")
    peers.missing = "Without peers: they solve with cg and gmres.";
  else if (peers_wanted && in_mpirun && !was_started_by_become_ranks())
    peers.missing =
        fmt::format("Without peers: mpirun cannot be started inside mpirun. Take --ranks {} in place of it.", launch().size);
  const bool with_peers = peers_wanted && peers.missing.empty();
  if (!in_mpirun && o.ranks > 1) become_ranks(o.ranks, with_peers ? o.ranks * std::max(1, o.threads) : 0);
  if (was_started_by_become_ranks() && o.threads == 0) o.threads = 1;
  if (!in_mpirun && runs_on_host(o)) {
    let_waiting_threads_sleep();
    if (o.threads == 0) o.threads = threads_of_environment(static_cast<int>(std::thread::hardware_concurrency()));
    o.request.cpu_clock = o.threads == 1;
    if (with_peers) peers = start_solve_peers(o.threads, o.request.cpu_clock);
  }
  return run_ranks(app, o.timeout, [&](Communicator& communicator) {
    if (in_mpirun && with_peers) peers = connect_solve_peers(communicator.size() * o.threads, communicator);
    return run(o, peers, communicator);
  });
}

void add_system_options(const CommandLine& app, Options& o) {
  app.add_option("matrix", o.matrices,
                 "matrix files or generators (default: Poisson and elasticity problems); elasticity:mesh=part.h5,clamp=0.03 "
                 "assembles the tetrahedra of a mesh")
      ->type_name("MATRIX");
  app.in(Topic::input)
      .add_option(
          "--coordinates", o.coordinates,
          "where the nodes of the one matrix lie: a file with a line of 3 numbers for each node (2 if nodes have two "
          "unknowns); see shardmat help solve. Generators give their own")
      ->type_name("FILE")
      ->common();
  app.in(Topic::input)
      .add_option("--size", o.size, "size of the default problems; auto is full on a GPU, small on the host")
      ->check(one_of({"auto", "tiny", "small", "full"}))
      ->capture_default_str()
      ->common();
}

void add_solver_options(const CommandLine& app, Options& o) {
  std::vector<std::string> solvers, preconditioner_names;
  for (const MethodEntry& method : methods()) solvers.emplace_back(method.name);
  for (const PreconditionerEntry& entry : preconditioners()) preconditioner_names.emplace_back(entry.name);
  app.in(Topic::computation)
      .add_option("--solver", o.request.solver, "Krylov method; the peers have cg and gmres")
      ->check(one_of(solvers))
      ->capture_default_str()
      ->common();
  add_list(app.in(Topic::computation), "--preconditioner", o.preconditioners,
           "preconditioners, as a list (default: multigrid,block_jacobi; on a GPU block_jacobi,jacobi). Peers are compared "
           "for multigrid, block_jacobi, jacobi and none")
      ->check(one_of(preconditioner_names))
      ->common();
  app.in(Topic::computation)
      .add_option("--rtol", o.request.rtol, "a solve ends when |b - Ax| is X times |b|; 0: at --max-iterations")
      ->check(finite_number())
      ->capture_default_str()
      ->common();
  app.in(Topic::computation)
      .add_option("--max-iterations", o.request.most, "a solve ends after N iterations")
      ->check(whole_number(1, 1 << 30))
      ->capture_default_str();
  app.in(Topic::computation)
      .add_option("--repetitions", o.repetitions, "answers of each solver, in turns; medians are shown")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  app.in(Topic::computation).add_flag("!--no-peers", o.peers, "measure Shardmat alone");
}

void add_machine_options(const CommandLine& app, Options& o) {
  add_backend_option(app, o.backend);
  app.in(Topic::machine)
      .add_option("--ranks", o.ranks,
                  "run on N ranks: starts mpirun for Shardmat and another one for the peers. Times are wall times")
      ->check(whole_number(1, 4096))
      ->common();
  app.in(Topic::machine)
      .add_option("--threads", o.threads,
                  "host threads of each rank (default: the cores; with --ranks 1). The peers have no threads and run on as "
                  "many ranks")
      ->check(whole_number(1, 4096))
      ->common();
  app.in(Topic::machine)
      .add_option("--timeout", o.timeout, "stop if a rank has not answered for X seconds")
      ->capture_default_str();
  add_json_option(app, o.outputs.json, ", anew after every system");
  app.in(Topic::output)
      .add_option("--plot", o.outputs.plot, "draw the times to FILE (.svg, .png or .pdf; needs python3-matplotlib)")
      ->check(plot_name())
      ->type_name("FILE")
      ->common();
}

}  // namespace

std::function<int()> add_bench_solve(const CommandLine& bench) {
  const CommandLine app = bench.add_subcommand(
      "solve", "Solvers: time of an answer with multigrid, beside block Jacobi, PETSc GAMG and hypre BoomerAMG");
  auto o = std::make_shared<Options>();
  add_system_options(app, *o);
  add_solver_options(app, *o);
  add_machine_options(app, *o);
  app.footer(
      "\nColumns: \"set-up\" makes the solver of a matrix in memory; \"refresh\" sets it up again for new values of the "
      "same pattern; \"whole\" is set-up and solve; \"residual\" is |b - Ax| / |b| of the x that the solver gave, formed "
      "anew, also after a refresh. WRONG: it is more than a tenth above --rtol. \"MB\": memory that the solver keeps beside "
      "A. \"ratio\": whole over that of our solver with the preconditioner under \"over\", the median with its 90 % "
      "interval; above 1, ours is faster.\n\nPeers try a few settings first, and the fastest is measured. On one rank with "
      "one thread times are CPU times. On a GPU, the peer is a loop of cuSPARSE and cuBLAS calls, whose set-up is not "
      "timed.\n"
      "\nExamples:\n  shardmat bench solve --threads 1 --json solve.json --plot solve.svg\n"
      "  shardmat bench solve elasticity:mesh=part.h5,clamp=0.03 bar.h5\n"
      "  shardmat bench solve --ranks 2\n");
  return [app, o] { return start(app, *o); };
}

}  // namespace shardmat::tools
