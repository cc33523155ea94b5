#include "runtime/run/solve.h"
#include "runtime/run/solve_forecast.h"
#include "runtime/run/solve_least_squares.h"
#include "runtime/solvers/solver_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "partition/readers/replaceable.h"
#include "runtime/solvers/loop/method.h"
#include "runtime/solvers/method_choice.h"
#include "tools/cli/checks.h"
#include "tools/cli/command.h"
#include "tools/cli/help_text.h"
#include "tools/cli/input_matrix.h"
#include "tools/cli/load_choices.h"
#include "tools/cli/node_options.h"
#include "tools/cli/plot.h"
#include "tools/cli/print_report.h"
#include "tools/cli/progress_bar.h"
#include "tools/cli/report_option.h"
#include "tools/cli/run_owners.h"
#include "tools/cli/solver_settings.h"
#include "tools/cli/stop_signal.h"
#include "tools/cli/vtk_file.h"
#include "tools/client/remote_commands.h"

namespace shardmat::tools {
namespace {

struct Options : LoadChoices {
  SolveOptions solve;
  std::optional<SolverSettingOptions> settings;
  std::string backend = "auto", json, plot, vtk;
  bool force = false, monitor = false, dry_run = false;
  RemoteChoice remote;
};

constexpr const char* kPlotScript = "plot_convergence.py";

void add_vector_options(const CommandLine& app, Options& o) {
  SolveOptions& s = o.solve;
  app.in(Topic::input)
      .add_option(
          "--b", s.b,
          "b: ones, zeros, random, or a file: FILE.h5 (dataset /b), FILE.h5:/DATASET, FILE.npy, FILE.mtx (an array), "
          "FILE.txt, "
          "or a vector of PETSc (FILE or FILE:NUMBER), MATLAB (FILE.mat:NAME), hypre (NAME) or Harwell-Boeing (FILE:rhs)")
      ->capture_default_str()
      ->common();
  app.in(Topic::input)
      .add_option("--initial-guess", s.initial_guess,
                  "x before the first iteration: the words and files that --b takes (dataset /x)")
      ->capture_default_str();
  add_node_options(app, s.nodes);
  add_seed_option(app, s.seed);
  const Option output =
      app.in(Topic::output)
          .add_option(
              "--output", s.output,
              "write x to FILE.h5 (dataset /x), FILE.h5:/DATASET, FILE.npy, FILE.mtx, FILE.txt, FILE.petsc, FILE.mat or "
              "NAME.00000 (hypre), in the matrix's original row order. x is written even if the solver did not converge")
          ->check(output_name())
          ->type_name("FILE")
          ->common();
  add_files_option(app, s.files).needs(output);
  app.in(Topic::output)
      .add_flag("--force", o.force, "replace the output file even if it is of another kind, or has other datasets");
}

/// How it is solved, and what is told meanwhile.
void add_solver_options(const CommandLine& app, Options& o) {
  o.settings.emplace(app);
  app.in(Topic::computation)
      .add_flag("!--no-advice", o.solve.advice,
                "do not try other preconditioners after the solve. Without this option, a solve of 200 iterations or more "
                "with none or jacobi is followed by a trial: does jacobi or block_jacobi need 1.3 times fewer? The trial "
                "takes at most about a tenth of the solve's time");
  app.in(Topic::output)
      .add_flag("--monitor", o.monitor, "print the residual of every iteration to standard error")
      ->common();
  app.in(Topic::output)
      .add_flag("--monitor-true-residual", o.solve.control.true_residuals,
                "print two norms for each right-hand side after every iteration: that of the residual that the method "
                "updates, and the true |b - Ax|. Each iteration then takes one more product, and gmres and fgmres form x "
                "each time. GPUs use no CUDA graph");
}

void add_options(const CommandLine& app, Options& o) {
  app.add_option("matrix", o.solve.matrix, "matrix file (" + known_suffixes() + "), or a generator such as elasticity:n=40")
      ->required();
  add_vector_options(app, o);
  add_solver_options(app, o);
  app.in(Topic::input)
      .add_flag("--allow-nonfinite", o.solve.allow_nonfinite, "accept NaN and infinity among the values of the matrix");
  app.in(Topic::input)
      .add_option("--type", o.type, "type of the values of matrix and vectors")
      ->check(one_of({"f32", "f64"}))
      ->capture_default_str()
      ->common();
  app.in(Topic::input)
      .add_option("--rhs", o.rhs,
                  "number of right-hand sides that are solved at once; b, x and the output have as many columns")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str()
      ->common();
  add_json_option(app, o.json);
  app.in(Topic::output)
      .add_flag(
          "--dry-run", o.dry_run,
          "solve nothing: tell rows, nonzeros, and an estimate of the memory that a rank will take for matrix, vectors "
          "and preconditioner");
  app.in(Topic::output)
      .add_option("--plot", o.plot,
                  "draw the norm of the residual over the iterations to FILE (.svg, .png or .pdf; needs "
                  "python3-matplotlib). With --monitor-true-residual, draw the true residual, too")
      ->check(plot_name())
      ->type_name("FILE");
  app.in(Topic::output)
      .add_option("--vtk", o.vtk,
                  "write x as values of the nodes to FILE.vtu, which ParaView opens. Cells come from the mesh that "
                  "--coordinates names, or from a generator; where only coordinates are known, the nodes alone are written")
      ->check(vtk_name())
      ->type_name("FILE");
  add_backend_option(app, o.backend);
  add_input_options(app, o.solve.choices);
  add_kernel_options(app, o);
  add_rank_options(app, o);
  add_node_option(app, o.load.node_block_size);
  add_remote_options(app, o.remote);
  app.footer(
      "\nExit code 7: the solver did not converge. The report names the reason, and the last x is written. Ctrl-C, "
      "SIGTERM and SIGUSR1 end the solver early in the same way, also under mpirun. A second Ctrl-C ends the program at "
      "once. \"To end early\" in tools/README.md says how long ranks may write after a signal.\n"
      "\nOptions of PETSc and their names here:\n"
      "  -ksp_type                          --solver (bcgs: bicgstab)\n"
      "  -pc_type                           --preconditioner (pbjacobi: block_jacobi)\n"
      "  -ksp_rtol, -ksp_atol, -ksp_divtol  --rtol, --atol, --divergence-tolerance\n"
      "  -ksp_max_it, -ksp_gmres_restart    --max-iterations, --restart\n"
      "  -ksp_cg_single_reduction           --variant single_reduction\n"
      "  -ksp_norm_type                     --residual-norm\n"
      "  -ksp_constant_null_space           --null-space constant\n"
      "  -ksp_initial_guess_nonzero         --initial-guess FILE\n"
      "  -ksp_monitor                       --monitor\n"
      "  -ksp_monitor_true_residual         --monitor-true-residual\n"
      "  -ksp_converged_reason              always in the report\n"
      "\nExamples:\n"
      "  mpirun -n 4 shardmat solve bar.h5 --b loads.npy --preconditioner jacobi --output x.npy\n"
      "  shardmat solve elasticity:n=40,clamp=0.05 --rtol 1e-10 --json report.json\n"
      "  mpirun -n 2 shardmat solve overdetermined.mtx --solver lsqr --b measured.npy --output x.npy\n"
      "  shardmat solve bar.h5 --rhs 8 --b loads.h5:/cases --output x.h5\n"
      "  shardmat solve job.sti --b job.loads.npy --coordinates job.inp --vtk x.vtu\n");
}

void finish_options(Options& o) {
  if (const auto names = names_of(methods()); std::find(names.begin(), names.end(), o.load.method) != names.end())
    throw Error(ErrorKind::usage, fmt::format("{} is a solver, not how rows are divided among the ranks", o.load.method),
                "solver=" + o.load.method);
  finish_load_choices(o);
  SolveOptions& s = o.solve;
  s.load = o.load;
  s.load.plan.products = 1000;  // a solve takes hundreds of products: measuring pays
  s.backend = parse_backend_choice(o.backend);
  o.settings->take(s.solver);
  std::string& space = s.solver.preconditioning.multigrid.near_null_space;
  s.nodes.near_null_vectors = vectors_file(space);
  if (!s.nodes.near_null_vectors.empty()) space = "auto";
  if (!may_use_coordinates(s.solver) && o.vtk.empty())
    for (const auto& [file, what, setting] : {std::tuple(&s.nodes.coordinates, "coordinates", "coordinates"),
                                              std::tuple(&s.nodes.mid_edges, "mid-edge nodes", "mid_edge_nodes")})
      if (!file->empty())
        throw Error(
            ErrorKind::usage,
            fmt::format("{} are of no use without the preconditioner multigrid or the null space rigid; leave them out",
                        what),
            setting);
  s.solver.graph = !o.no_graph;
  s.control.progress = make_progress_bar();
}

void print_residuals(std::int64_t iteration, const std::vector<double>& norms, const std::vector<double>& true_norms) {
  std::string line = fmt::format("{:>6}", iteration);
  for (std::size_t j = 0; j < norms.size(); ++j) {
    line += fmt::format(" {:.9e}", norms[j]);
    if (!true_norms.empty()) line += fmt::format(" {:.9e}", true_norms[j]);
  }
  note_iterations();
  print_news(line + "\n");
}

/// Shows the iterations on a terminal where --monitor does not.
void show_iterations(SolveControl& control, IterationLine& line) {
  if (!IterationLine::is_wanted()) return;
  control.progress = [bar = control.progress](std::string_view phase, std::int64_t done, std::int64_t total) {
    if (phase != "solving") report(bar, phase, done, total);
  };
  control.monitor = [&line](std::int64_t iteration, const std::vector<double>& norms, const std::vector<double>&) {
    line.update(iteration, *std::max_element(norms.begin(), norms.end()));
  };
}

int forecast(const Options& o, Communicator& communicator) {
  communicator.run_agreed([&] {
    if (communicator.rank() == 0) check_report_file(o.json);
  });
  print_report(forecast_solve(communicator, o.solve), o.json, communicator);
  return 0;
}

int run_least_squares(const Options& o, Communicator& communicator) {
  if (o.dry_run || o.monitor || !o.plot.empty() || !o.vtk.empty())
    throw Error(ErrorKind::usage,
                fmt::format("{} has neither a dry run nor a monitor, plot or picture", o.solve.solver.solver),
                "solver=" + o.solve.solver.solver);
  communicator.run_agreed([&] {
    if (communicator.rank() != 0) return;
    require_spared({{o.solve.b, "b"}, {o.solve.initial_guess, "the initial guess"}, {o.solve.matrix, "the matrix"}},
                   {o.solve.output, o.json});
    check_report_file(o.json);
    if (!o.force && !o.solve.output.empty()) require_replaceable(o.solve.output, Output::vector, "x", o.solve.files);
  });
  const LeastSquaresReport report = solve_least_squares(communicator, o.solve);
  print_report(report, o.json, communicator);
  return convergence_code(report.result.converged(), "the solver", communicator);
}

int run(Options& o, Communicator& communicator) {
  communicator.run_agreed([&] {
    if (communicator.rank() != 0) return;
    const std::vector<InputFile> inputs{{o.solve.b, "b"},
                                        {o.solve.initial_guess, "the initial guess"},
                                        {o.solve.nodes.coordinates, "the coordinates"},
                                        {o.solve.nodes.mid_edges, "the mid-edge nodes"},
                                        {o.solve.nodes.near_null_vectors, "the near-null vectors"},
                                        {o.solve.matrix, "the matrix"}};
    require_spared(inputs, {o.solve.output, o.json, o.plot, o.vtk});
    check_report_file(o.json);
    check_report_file(o.vtk);
    if (!o.plot.empty()) {
      check_report_file(o.plot);
      require_plot_script(kPlotScript);
    }
    if (!o.force && !o.solve.output.empty()) require_replaceable(o.solve.output, Output::vector, "x", o.solve.files);
  });
  if ((o.monitor || o.solve.control.true_residuals) && communicator.rank() == 0) o.solve.control.monitor = print_residuals;
  IterationLine line("solving");
  if (communicator.rank() == 0 && !o.solve.control.monitor) show_iterations(o.solve.control, line);
  o.solve.control.stop = stop_on_signal();
  if (!o.vtk.empty())
    o.solve.picture = [&](const RowSource& source, std::int64_t node_block_size) {
      return [&o, mesh = view_mesh(o.solve.nodes, source, node_block_size)](const HostVector<double>& x) {
        write_vtk(o.vtk, mesh, x, o.rhs, "x");
      };
    };
  const SolveReport report = solve(communicator, o.solve);
  line.end();
  print_report(report, o.json, communicator);
  if (!o.plot.empty())
    communicator.run_agreed([&] {
      if (communicator.rank() == 0) plot(kPlotScript, to_json(report), o.plot);
    });
  if (report.result.maps_constants_to_zero && communicator.rank() == 0)
    print_news("The matrix maps constant vectors to 0; give --null-space constant\n");
  return convergence_code(report.result.converged(), "the solver", communicator);
}

}  // namespace

std::function<int()> add_solve(const CommandLine& program) {
  const CommandLine app = program.add_subcommand("solve", "Solve A x = b on the ranks of mpirun");
  auto options = std::make_shared<Options>();
  add_options(app, *options);
  return [app, options] {
    finish_options(*options);
    if (options->remote.is_remote()) return solve_remotely(app, options->remote, options->solve, options->force);
    return run_owners(app, options->timeout, options->sharing, options->backend, [&](Communicator& communicator) {
      if (is_least_squares_method(options->solve.solver.solver)) return run_least_squares(*options, communicator);
      return options->dry_run ? forecast(*options, communicator) : run(*options, communicator);
    });
  };
}

}  // namespace shardmat::tools
