#include "runtime/run/eigen.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "partition/readers/replaceable.h"
#include "partition/source/partitioner.h"
#include "tools/cli/checks.h"
#include "tools/cli/command.h"
#include "tools/cli/input_matrix.h"
#include "tools/cli/load_choices.h"
#include "tools/cli/node_options.h"
#include "tools/cli/print_report.h"
#include "tools/cli/progress_bar.h"
#include "tools/cli/report_option.h"
#include "tools/cli/run_owners.h"
#include "tools/cli/setting_options.h"
#include "tools/cli/stop_signal.h"
#include "tools/client/remote_commands.h"

namespace shardmat::tools {
namespace {

struct Options : LoadChoices {
  EigenOptions eigen;
  std::string method = "auto", which, backend = "auto", json;
  double shift = 0;
  bool force = false, monitor = false, no_confirm = false;
  RemoteChoice remote;
};

void add_method_options(const CommandLine& command, Options& o) {
  const CommandLine app = command.in(Topic::computation);
  LanczosOptions& s = o.eigen.settings;
  app.add_option(
         "--method", o.method,
         "lanczos: eigenvalues at the ends of the spectrum of a symmetric matrix. power: the eigenvalue of the "
         "largest magnitude of any square matrix. lobpcg: the smallest eigenvalues of a positive definite or "
         "semidefinite matrix, or of K x = λ M x, by blocks with multigrid. shift_invert: those nearest to --shift, or "
         "the smallest, by factors. auto: lanczos for one matrix, shift_invert with --shift and for pairs of 3,000 "
         "rows and fewer, else lobpcg")
      ->check(one_of({"auto", "lanczos", "power", "lobpcg", "shift_invert"}))
      ->capture_default_str()
      ->common();
  app.add_option(
         "--mass", o.eigen.mass,
         "M of K x = λ M x, in any format: symmetric and positive definite, of the size of the matrix, which is K. "
         "The report has frequencies sqrt(λ)/(2 pi). Rows of K that are those of the identity are left out. auto: the "
         ".mas beside a .sti of CalculiX")
      ->type_name("FILE")
      ->common();
  app.add_option("--shift", o.shift, "shift_invert: eigenvalues nearest to X; of a frequency f take (2 pi f)^2. See --inner")
      ->check(finite_number())
      ->common();
  app.add_option(
         "--inner", o.eigen.pair.inner,
         "shift_invert, how systems with K - shift M are solved. factors: by MUMPS, or Eigen on one rank; the signs of "
         "pivots count eigenvalues, so that none is missing. minres: iterations with multigrid, for pairs whose "
         "factors do not fit in memory; no eigenvalues are counted. auto: factors where they are to be had and fit")
      ->check(one_of({"auto", "factors", "minres"}))
      ->capture_default_str();
  app.add_option("--inner-tolerance", o.eigen.pair.inner_tolerance,
                 "minres: ends at residuals of X times the right-hand side (default: a tenth of --tolerance). Where pairs "
                 "miss their tolerance, the last solves are made a hundred times more accurate, up to twice")
      ->check(positive_number());
  app.add_option("--guard", o.eigen.pair.guard,
                 "lobpcg: vectors of the block beside the wanted ones (default: a third of them and 2, and what fills a "
                 "multiple of 8)")
      ->check(whole_number(1, 2000));
  app.add_option("--count", s.count, "number of eigenvalues. With --which both, each end has this number")
      ->check(whole_number(1, 4093))
      ->capture_default_str()
      ->common();
  app.add_option("--which", o.which,
                 "lanczos: which end of the spectrum; -5 is smaller than 1 (default: largest; smallest for lobpcg and "
                 "shift_invert, which give no others)")
      ->check(one_of({"largest", "smallest", "both"}))
      ->common();
  app.add_option("--tolerance", s.tolerance,
                 "end when each residual |Ax - value x| is at most X times the largest magnitude of an eigenvalue (default: "
                 "1e-10, with --type f32 1e-5); lobpcg and shift_invert: |Kx - λMx| at most X |λ| |Mx| (default: 1e-8)")
      ->check(finite_number())
      ->common();
  app.add_option("--max-iterations", s.max_iterations,
                 "end after N products with the matrix; lobpcg and shift_invert: of blocks (default: 10000; of blocks 500)")
      ->check(whole_number(1, 1'000'000'000))
      ->common();
  app.add_option("--basis", s.basis,
                 "lanczos: number of vectors until a restart. More vectors need more memory and fewer products (default: "
                 "twice the wanted eigenvalues and 40 more)")
      ->check(whole_number(1, 4096));
  add_seed_option(app, s.seed);
  app.add_flag(
      "--no-confirm", o.no_confirm,
      "lanczos: do not search for further copies of multiple eigenvalues. This takes fewer products. shift_invert and "
      "lobpcg: do not count the eigenvalues by the signs of the pivots. This saves one or two factorisations");
  app.add_flag(
      "--check-count", o.eigen.pair.check_count,
      "lobpcg: count the eigenvalues by the signs of the pivots of factors also where these take long: of more than "
      "3,000 rows");
  app.add_flag("--assume-symmetric", s.assume_symmetric, "do not check that the matrices are symmetric (not for power)");
}

void add_result_options(const CommandLine& command, Options& o) {
  const CommandLine app = command.in(Topic::output);
  app.add_option(
         "--vectors", o.eigen.vectors,
         "write the eigenvectors to FILE.h5 (dataset /vectors), FILE.h5:/DATASET, FILE.npy or FILE.mtx, in the matrix's "
         "original row order. Each eigenvalue has a column, in ascending order, even if it did not converge")
      ->check(output_name())
      ->type_name("FILE")
      ->common();
  app.add_flag("--force", o.force, "replace the output file even if it is of another kind, or has other datasets");
  add_json_option(app, o.json);
  app.add_flag("--monitor", o.monitor,
               "print values and residuals to standard error. power prints them after every product, lanczos when the basis "
               "is full");
}

void add_options(const CommandLine& app, Options& o) {
  app.add_option("matrix", o.eigen.matrix, "matrix file (" + known_suffixes() + "), or a generator such as elasticity:n=40")
      ->required();
  add_method_options(app, o);
  add_result_options(app, o);
  app.in(Topic::input)
      .add_flag("--allow-nonfinite", o.eigen.allow_nonfinite, "accept NaN and infinity among the values of the matrix");
  app.in(Topic::input)
      .add_option("--type", o.type, "type of the values of matrix and vectors")
      ->check(one_of({"f32", "f64"}))
      ->capture_default_str()
      ->common();
  add_backend_option(app, o.backend);
  add_input_options(app, o.eigen.choices);
  add_node_options(app, o.eigen.nodes);
  add_kernel_options(app, o);
  add_rank_options(app, o, "--partition");
  add_remote_options(app, o.remote);
  add_node_option(app, o.load.node_block_size);
  app.footer(
      "\nExit code 7: an eigenvalue did not converge. The report says which. Ctrl-C, SIGTERM and SIGUSR1 end the "
      "iterations early in the same way, also under mpirun. A second Ctrl-C ends the program at once. \"To end early\" in "
      "tools/README.md says how long ranks may write after a signal.\n"
      "\nExamples:\n"
      "  mpirun -n 4 shardmat eigen bar.h5 --count 6 --which smallest --vectors modes.npy\n"
      "  mpirun -n 4 shardmat eigen elasticity:n=30,clamp=0.03 --mass mass:n=30,clamp=0.03 --count 10\n"
      "  shardmat eigen K.mtx --mass M.mtx --count 20 --shift 4e5\n"
      "  shardmat eigen elasticity:n=20,clamp=0.05 --which both --json report.json\n"
      "  shardmat eigen web.mtx.gz --method power --tolerance 1e-6\n");
}

/// --method is the method here; what load_choices.h calls so is --partition.
void require_partitioner(const std::string& method) {
  try {
    make_partition(method, std::vector<std::int64_t>{0}, 1);
  } catch (const Error& error) {
    throw Error(error.kind(), error.what(), "partition");
  }
}

void finish_options(const CommandLine& app, Options& o) {
  finish_load_choices(o);
  require_partitioner(o.load.method);
  EigenOptions& e = o.eigen;
  e.load = o.load;
  e.load.plan.products = 1000;  // it takes hundreds of products: measuring pays
  e.load.progress = make_progress_bar();
  e.backend = parse_backend_choice(o.backend);
  for (const EigenMethod method :
       {EigenMethod::automatic, EigenMethod::power, EigenMethod::lanczos, EigenMethod::lobpcg, EigenMethod::shift_invert})
    if (o.method == name(method)) e.method = method;
  if (app.count("--shift") > 0) e.pair.shift = o.shift;
  const bool pairs = is_of_pairs(e);
  if (o.which.empty()) o.which = pairs ? "smallest" : "largest";
  e.settings.which = o.which == "smallest" ? Which::smallest : o.which == "both" ? Which::both : Which::largest;
  e.settings.confirm = !o.no_confirm;
  if (app.count("--tolerance") == 0)
    e.settings.tolerance = default_eigen_tolerance(pairs, o.type == "f32" ? ValueType::f32 : ValueType::f64);
  e.pair.count = e.settings.count, e.pair.tolerance = e.settings.tolerance, e.pair.seed = e.settings.seed;
  e.pair.confirm = e.settings.confirm, e.pair.assume_symmetric = e.settings.assume_symmetric;
  if (app.count("--max-iterations") > 0) e.pair.max_iterations = e.settings.max_iterations;
  if (e.method == EigenMethod::power)
    for (const char* setting : {"basis", "no_confirm", "assume_symmetric"})
      if (app.count(option_of(setting)) > 0)
        throw Error(ErrorKind::usage, "the power method has no use for this; leave it out, or take lanczos", setting);
}

void print_pairs(std::int64_t iteration, const std::vector<Eigenpair>& pairs) {
  std::string line = fmt::format("{:>6}", iteration);
  for (const Eigenpair& pair : pairs) line += fmt::format(" {:.15e} {:.3e}", pair.value, pair.residual);
  note_iterations();
  print_news(line + "\n");
}

int run(Options& o, Communicator& communicator) {
  communicator.run_agreed([&] {
    if (communicator.rank() != 0) return;
    require_spared({{o.eigen.matrix, "the matrix"}, {o.eigen.mass, "the mass matrix"}}, {o.eigen.vectors, o.json});
    check_report_file(o.json);
    if (!o.force && !o.eigen.vectors.empty()) require_replaceable(o.eigen.vectors, Output::vector, "vectors");
  });
  o.eigen.stop = stop_on_signal();
  if (o.monitor && communicator.rank() == 0) o.eigen.monitor = print_pairs;
  const EigenReport report = eigen(communicator, o.eigen);
  print_report(report, o.json, communicator);
  const int code = convergence_code(report.result.converged(), "an eigenvalue", communicator);
  if (code != 0 || report.pair.missing <= 0) return code;
  if (communicator.rank() == 0)
    print_news(
        fmt::format("shardmat: {} eigenvalues among those found are missing; allow a smaller tolerance or more guard "
                    "vectors, or take the method shift_invert\n",
                    report.pair.missing));
  return kNotConverged;
}

}  // namespace

std::function<int()> add_eigen(const CommandLine& program) {
  const CommandLine app = program.add_subcommand("eigen", "Find extreme eigenvalues of a matrix on the ranks of mpirun");
  auto options = std::make_shared<Options>();
  add_options(app, *options);
  return [app, options] {
    finish_options(app, *options);
    if (options->remote.is_remote()) return eigen_remotely(app, options->remote, options->eigen, options->force);
    return run_owners(app, options->timeout, options->sharing, options->backend,
                      [&](Communicator& communicator) { return run(*options, communicator); });
  };
}

}  // namespace shardmat::tools
