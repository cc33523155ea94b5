// `shardmat bench factors`: incomplete factors as preconditioners: in which order rows are eliminated, and on a GPU, how
// their triangles are solved. cuSPARSE solves the same triangles in the same run.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/base/timer.h"
#include "runtime/context/context_scope.h"
#include "runtime/solvers/incomplete/factors.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/loop/symmetry.h"
#include "runtime/solvers/multigrid/take_nodes.h"
#include "runtime/solvers/solver.h"
#include "tools/bench/bench.h"
#include "tools/bench/factors_library.h"
#include "tools/bench/machine.h"
#include "tools/bench/matrices.h"
#include "tools/bench/outputs.h"
#include "tools/bench/result_table.h"
#include "tools/bench/solve_system.h"
#include "tools/cli/checks.h"
#include "tools/cli/environment.h"
#include "tools/cli/report_option.h"
#include "tools/cli/run_ranks.h"

namespace shardmat::tools {
namespace {

constexpr int kTogether = 10;                            ///< applications in a graph
constexpr std::int64_t kNever = 0, kAlways = 1'000'000;  ///< levels that have a launch each

constexpr MatrixClass kSystems[] = {
    {"convection, rotating",
     {"convection_diffusion:n=8,peclet=1,wind=rotating", "convection_diffusion:n=48,peclet=1,wind=rotating",
      "convection_diffusion:n=128,peclet=1,wind=rotating"}},
    {"strong convection",
     {"convection_diffusion:n=8,peclet=10,wind=rotating", "convection_diffusion:n=48,peclet=10,wind=rotating",
      "convection_diffusion:n=128,peclet=10,wind=rotating"}},
    {"Poisson, 27 points", {"poisson27:n=8", "poisson27:n=32", "poisson27:n=96"}},
    {"elasticity", {"elasticity:n=5,clamp=0.05", "elasticity:n=16,clamp=0.05", "elasticity:n=56,clamp=0.05"}},
};

struct Options {
  std::vector<std::string> matrices;
  std::string size = "auto", backend = "auto", solver = "auto";
  double rtol = 1e-8, timeout = 300;
  FactorOptions factor;
  std::int64_t most = 5000;
  int repetitions = 5, threads = 0;
  Outputs outputs;
};

/// A way to make factors and to apply them.
struct Design {
  std::string name, order;
  ValueType type;
  int sweeps = 0;
  std::int64_t most_launches = kNever;
  bool library = false;
};

std::vector<Design> designs(bool on_host) {
  constexpr auto kF32 = ValueType::f32, kF64 = ValueType::f64;
  if (on_host)
    return {{"host", "natural", kF32},    {"host", "rcm", kF32},        {"host", "colours", kF32},
            {"host", "clusters:2", kF32}, {"host", "clusters:3", kF32}, {"host", "clusters:4", kF32},
            {"host", "clusters:6", kF32}, {"host", "natural", kF64}};
  return {{"rows wait", "natural", kF32},
          {"rows wait", "natural", kF64},
          {"cuSPARSE SpSV", "natural", kF32, 0, 0, true},
          {"cuSPARSE SpSV", "natural", kF64, 0, 0, true},
          {"a launch a level", "natural", kF32, 0, kAlways},
          {"a launch a level", "colours", kF32, 0, kAlways},
          {"a launch a level", "colours", kF64, 0, kAlways},
          {"rows wait", "colours", kF32},
          {"a launch a level", "clusters:2", kF32, 0, kAlways},
          {"rows wait", "clusters:2", kF32},
          {"a launch a level", "clusters:3", kF32, 0, kAlways},
          {"rows wait", "clusters:3", kF32},
          {"rows wait", "clusters:4", kF32},
          {"rows wait", "clusters:6", kF32},
          {"1 sweep", "natural", kF32, 1},
          {"2 sweeps", "natural", kF32, 2},
          {"3 sweeps", "natural", kF32, 3},
          {"5 sweeps", "natural", kF32, 5},
          {"2 sweeps", "clusters:2", kF32, 2},
          {"cuSPARSE SpSV", "clusters:3", kF32, 0, 0, true}};
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

class Run {
 public:
  Run(const Options& options, Communicator& communicator)
      : options_(options),
        context_(communicator, parse_backend_choice(options.backend), options.threads),
        scope_(context_),
        machine_(examine_machine(on_host() ? "host" : "cuda")) {
    table_.title =
        fmt::format("Incomplete factors, ‖b − A·x‖ ≤ {:g}·‖b‖; milliseconds of an application and of a solve", options.rtol);
    table_.columns = {{"matrix", "matrix"},       {"rows", "rows"},
                      {"nnz", "nonzeros", false}, {"preconditioner", "of"},
                      {"design", "solves"},       {"order", "order"},
                      {"type", "type"},           {"set_up_s", "set-up"},
                      {"apply_s", "application"}, {"iterations", "iterations"},
                      {"solve_s", "solve"},       {"detail", "detail", false},
                      {"right", "", true}};
    if (options.outputs.json != "-") fmt::print("{}", machine_.text());
  }

  int operator()() {
    const GrowingReport file(options_.outputs, "");
    const Size size = options_.size != "auto" ? parse_size(options_.size) : on_host() ? Size::small : Size::full;
    for (const NamedMatrix& one : matrices_from(options_.matrices, kSystems, size)) measure(one.argument, file);
    if (options_.outputs.json != "-") fmt::print("{}", table_.text());
    file.finish(json());
    return exit_code(wrong_);
  }

 private:
  bool on_host() const { return context_.device().backend == Backend::host; }

  void measure(const std::string& matrix, const GrowingReport& file) {
    SolveSystem system(matrix, "", context_);
    const bool symmetric = probe_symmetry(*system.matrix().product(), context_.stream()).symmetric;
    for (const Design& design : designs(on_host())) {
      std::vector<Cell> row{Cell::word(matrix), Cell::count(system.matrix().rows()), Cell::count(system.matrix().nnz()),
                            Cell::word(symmetric ? "ic" : "ilu")};
      for (const std::string& word : {design.name, design.order, std::string(name(design.type))})
        row.push_back(Cell::word(word));
      design.library ? measure_library(system, design, symmetric, row) : measure_own(system, design, symmetric, row);
      table_.rows.push_back(std::move(row));
      file.save([&] { return json(); });
    }
  }

  SolverOptions solver_options(const Design& design, bool symmetric) const {
    SolverOptions o;
    o.solver = options_.solver != "auto" ? options_.solver : symmetric ? "cg" : "bicgstab";
    o.preconditioner = symmetric ? "ic" : "ilu";
    o.rtol = options_.rtol, o.max_iterations = options_.most;
    o.preconditioning.factor = options_.factor;
    o.preconditioning.factor.order = design.order, o.preconditioning.factor.sweeps = design.sweeps;
    o.preconditioning.factor.most_launches = design.most_launches;
    o.preconditioning.multigrid.inner = design.type;
    return o;
  }

  static Cell milliseconds(double seconds) { return {seconds, fmt::format("{:.3f}", 1e3 * seconds)}; }

  /// Seconds of a call, of `count` that follow each other.
  template <class F>
  double timed(int count, const F& call) {
    context_.stream().synchronize();
    const Timer timer;
    for (int i = 0; i < count; ++i) call();
    context_.stream().synchronize();
    return timer.seconds() / count;
  }

  void measure_own(SolveSystem& system, const Design& design, bool symmetric, std::vector<Cell>& row) {
    Stream& stream = context_.stream();
    const Timer timer;
    Solver solver(system.matrix(), solver_options(design, symmetric));
    stream.synchronize();
    row.push_back(milliseconds(timer.seconds()));
    const std::string detail = solver.preconditioner().describe();
    const Dense r = system.b().view(), z = system.x().view();
    const Preconditioner& m = solver.preconditioner();
    Graph graph(stream, [&] {
      for (int i = 0; i < kTogether; ++i) m.apply(r, z, stream);
    });
    std::vector<double> applied, solved;
    for (int i = 0; i <= options_.repetitions; ++i) {
      const double seconds = timed(1, [&] { graph.launch(stream); }) / kTogether;
      if (i > 0) applied.push_back(seconds);
    }
    SolveResult result;
    for (int i = 0; i <= options_.repetitions; ++i) {
      system.x().fill(0, stream);
      const double seconds = timed(1, [&] { result = solver.solve(system.b(), system.x()); });
      if (i > 0) solved.push_back(seconds);
    }
    row.push_back(milliseconds(median(applied)));
    row.push_back(Cell::count(result.iterations));
    row.push_back(milliseconds(median(solved)));
    row.push_back(Cell::word(detail));
    row.push_back({result.converged(), result.converged() ? "" : "not converged"});
  }

  /// The factors that the host makes in this order.
  void measure_library(SolveSystem& system, const Design& design, bool symmetric, std::vector<Cell>& row) {
    Stream& stream = context_.stream();
    const auto size = static_cast<int>(system.node_size());
    const incomplete::SquareRows a = incomplete::own_square(multigrid::take_nodes(system.matrix(), size, nullptr, stream));
    const FactorOptions& f = options_.factor;
    const bool fills = f.drop_tolerance > 0;
    const std::optional<int> matching = incomplete::matching_of(design.order);
    incomplete::Order order = matching
                                  ? incomplete::order_by_colours(a, *matching, fills ? 0 : f.levels, fills, thread_count())
                                  : incomplete::find_order(a, design.order == "rcm", thread_count());
    incomplete::Pattern pattern = incomplete::find_pattern(a, order, f, symmetric);
    const auto factors = incomplete::make_factors(std::move(order), std::move(pattern), size, symmetric, design.type);
    factors->factorise(a);
    const Timer timer;
    const std::unique_ptr<LibrarySolves> solves = make_library_solves(factors->arrays(), stream);
    row.push_back(milliseconds(timer.seconds()));
    std::vector<double> applied;
    for (int i = 0; i <= options_.repetitions; ++i) {
      const double seconds = timed(kTogether, [&] { solves->apply(); });
      if (i > 0) applied.push_back(seconds);
    }
    const double error = solves->error();
    const bool right = error <= (design.type == ValueType::f64 ? 1e-12 : 1e-4);
    wrong_ += right ? 0 : 1;
    row.push_back(milliseconds(median(applied)));
    row.insert(row.end(), 2, Cell::none());
    row.push_back(Cell::word(fmt::format("error of a row at most {:.1e}", error)));
    row.push_back({right, right ? "" : "WRONG"});
  }

  nlohmann::ordered_json json() const {
    return {{"command", command_line()},
            {"machine", machine_.json()},
            {"threads", context_.threads()},
            {"rtol", options_.rtol},
            {"factor_levels", options_.factor.levels},
            {"drop_tolerance", options_.factor.drop_tolerance},
            {"repetitions", options_.repetitions},
            {"table", table_.json()}};
  }

  const Options& options_;
  Context context_;
  ContextScope scope_;
  Machine machine_;
  ResultTable table_;
  std::int64_t wrong_ = 0;
};

}  // namespace

std::function<int()> add_bench_factors(const CommandLine& bench) {
  const CommandLine app = bench.add_subcommand(
      "factors", "Incomplete factors: orders and, on a GPU, ways to solve with them, compared with cuSPARSE");
  auto o = std::make_shared<Options>();
  app.add_option("matrix", o->matrices,
                 "matrix files or generators (default: convection and diffusion, Poisson, elasticity)")
      ->type_name("MATRIX");
  app.in(Topic::input)
      .add_option("--size", o->size, "size of the default systems; auto is full on a GPU, small on the host")
      ->check(one_of({"auto", "tiny", "small", "full"}))
      ->capture_default_str()
      ->common();
  app.in(Topic::computation)
      .add_option("--solver", o->solver, "Krylov method; auto: cg if the matrix is symmetric, else bicgstab")
      ->capture_default_str()
      ->common();
  app.in(Topic::computation)
      .add_option("--rtol", o->rtol, "a solve ends when |b - Ax| is X times |b|")
      ->check(finite_number())
      ->capture_default_str()
      ->common();
  app.in(Topic::computation)
      .add_option("--max-iterations", o->most, "a solve ends after N iterations")
      ->check(whole_number(1, 1 << 30))
      ->capture_default_str();
  app.in(Topic::computation)
      .add_option("--factor-levels", o->factor.levels, "levels of fill")
      ->check(whole_number(0, 20))
      ->capture_default_str()
      ->common();
  app.in(Topic::computation)
      .add_option("--drop-tolerance", o->factor.drop_tolerance, "above 0: fill by this tolerance in place of levels")
      ->check(finite_number())
      ->capture_default_str()
      ->common();
  app.in(Topic::computation)
      .add_option("--repetitions", o->repetitions, "times of each design; medians are shown")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  add_backend_option(app, o->backend);
  app.in(Topic::machine)
      .add_option("--threads", o->threads, "host threads (default: the cores)")
      ->check(whole_number(1, 4096))
      ->common();
  add_json_option(app, o->outputs.json, ", anew after every design");
  app.footer(
      "\nColumns: \"set-up\" makes factors on the host, in milliseconds; of cuSPARSE it is the analysis alone. "
      "\"application\" is z = M·r; of cuSPARSE both triangles alone.\n"
      "\nExamples:\n  shardmat bench factors --json factors.json\n"
      "  shardmat bench factors convection_diffusion:n=96,peclet=1 --factor-levels 1\n");
  return [app, o] {
    return run_ranks(app, o->timeout, [&](Communicator& communicator) {
      communicator.run_agreed([&] {
        if (communicator.size() > 1) throw Error(ErrorKind::usage, "this benchmark runs in one process: leave out mpirun");
        require_outputs(o->outputs, "", o->matrices);
      });
      return Run(*o, communicator)();
    });
  };
}

}  // namespace shardmat::tools
