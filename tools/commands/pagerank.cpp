#include "runtime/run/pagerank.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "partition/readers/replaceable.h"
#include "tools/cli/checks.h"
#include "tools/cli/command.h"
#include "tools/cli/input_matrix.h"
#include "tools/cli/load_choices.h"
#include "tools/cli/print_report.h"
#include "tools/cli/progress_bar.h"
#include "tools/cli/report_option.h"
#include "tools/cli/run_owners.h"
#include "tools/cli/stop_signal.h"

namespace shardmat::tools {
namespace {

constexpr double kToleranceF64 = 1e-10, kToleranceF32 = 1e-6;

struct Options : LoadChoices {
  PageRankOptions pagerank;
  std::string backend = "auto", json;
  bool force = false, monitor = false;
};

void add_walk_options(const CommandLine& app, Options& o) {
  PageRankOptions& p = o.pagerank;
  app.in(Topic::computation)
      .add_option("--damping", p.settings.damping,
                  "probability that a walk goes on along an edge, 0 or more and less than 1; otherwise it restarts")
      ->check(finite_number())
      ->capture_default_str()
      ->common();
  app.in(Topic::input)
      .add_option("--seeds", p.seeds,
                  "where walks restart. 3,17: at vertex 3 in column 0 of the scores, at vertex 17 in column 1. FILE.txt: "
                  "the same, from a file with a vertex on each line. FILE.npy, FILE.h5 (dataset /seeds) or FILE.mtx: --rhs "
                  "columns with a weight for each vertex (default: anywhere, with equal probability)")
      ->type_name("FILE|LIST")
      ->common();
  app.in(Topic::input)
      .add_flag("--unweighted", p.unweighted,
                "take every stored entry of the matrix as an edge of weight 1, even a stored zero")
      ->common();
  app.in(Topic::computation)
      .add_option(
          "--tolerance", p.settings.tolerance,
          "end when an iteration changes each column by at most X, in the L1 norm (default: 1e-10, with --type f32 1e-6)")
      ->check(finite_number())
      ->common();
  app.in(Topic::computation)
      .add_option("--max-iterations", p.settings.max_iterations, "end after N iterations")
      ->check(whole_number(0, 1'000'000'000))
      ->capture_default_str()
      ->common();
  app.in(Topic::input)
      .add_option("--rhs", o.rhs, "number of columns of a --seeds file of weights")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str();
}

void add_result_options(const CommandLine& command, Options& o) {
  const CommandLine app = command.in(Topic::output);
  PageRankOptions& p = o.pagerank;
  app.add_option("--output", p.output,
                 "write the scores to FILE.h5 (dataset /scores), FILE.h5:/DATASET, FILE.npy or FILE.mtx, in the graph's "
                 "original order. They are written even if they did not converge")
      ->check(output_name())
      ->type_name("FILE")
      ->common();
  app.add_flag("--force", o.force, "replace the output file even if it is of another kind, or has other datasets");
  app.add_option("--top", p.top, "number of the highest scores in the report, for each column")
      ->check(whole_number(0, 1'000'000))
      ->capture_default_str()
      ->common();
  add_json_option(app, o.json);
  app.add_flag("--monitor", o.monitor, "print the change of each column after every iteration to standard error");
}

void add_options(const CommandLine& app, Options& o) {
  app.add_option("graph", o.pagerank.graph,
                 "matrix file (" + known_suffixes() +
                     "), or a generator such as rmat:scale=16. Entry (i, j) is the weight of an edge from i to j")
      ->required();
  add_walk_options(app, o);
  add_result_options(app, o);
  app.in(Topic::input)
      .add_option("--type", o.type, "type of the values of matrix and scores")
      ->check(one_of({"f32", "f64"}))
      ->capture_default_str()
      ->common();
  add_backend_option(app, o.backend);
  add_input_options(app, o.pagerank.choices);
  add_kernel_options(app, o);
  add_rank_options(app, o);
  app.footer(
      "\nVertices are numbered from 0. Where a vertex has no outgoing weight, walks restart.\n"
      "\nExit code 7: the scores did not converge. The last scores are written. Ctrl-C, SIGTERM and SIGUSR1 end the "
      "iterations early in the same way, also under mpirun. A second Ctrl-C ends the program at once. \"To end early\" in "
      "tools/README.md says how long ranks may write after a signal.\n"
      "\nExamples:\n"
      "  mpirun -n 4 shardmat pagerank web.mtx.gz --output scores.npy --top 20\n"
      "  shardmat pagerank web.h5 --seeds 3,17,42 --json report.json\n"
      "  shardmat pagerank rmat:scale=16 --unweighted --type f32\n");
}

void finish_options(const CommandLine& app, Options& o) {
  const std::int64_t column_block = o.load.column_block;
  o.load.column_block = 0;  // the number of seeds, which it must divide, is not known yet
  finish_load_choices(o);
  PageRankOptions& p = o.pagerank;
  p.load = o.load;
  p.load.column_block = column_block;
  p.load.plan.products = 100;  // what a damping of 0.85 takes, or more
  p.load.progress = make_progress_bar();
  p.backend = parse_backend_choice(o.backend);
  if (app.count("--tolerance") == 0) p.settings.tolerance = o.type == "f32" ? kToleranceF32 : kToleranceF64;
  if (app.count("--seeds") > 0 && p.seeds.empty())
    throw Error(ErrorKind::usage, "the list of seeds is empty; name vertices as 3,17, or a file", "seeds");
}

void print_changes(std::int64_t iteration, const std::vector<double>& changes) {
  std::string line = fmt::format("{:>6}", iteration);
  for (const double change : changes) line += fmt::format(" {:.9e}", change);
  note_iterations();
  print_news(line + "\n");
}

int run(Options& o, Communicator& communicator) {
  communicator.run_agreed([&] {
    if (communicator.rank() != 0) return;
    const std::vector<InputFile> inputs{{o.pagerank.graph, "the graph"}, {o.pagerank.seeds, "the seeds"}};
    require_spared(inputs, {o.pagerank.output, o.json});
    check_report_file(o.json);
    if (!o.force && !o.pagerank.output.empty()) require_replaceable(o.pagerank.output, Output::vector, "scores");
  });
  o.pagerank.stop = stop_on_signal();
  if (o.monitor && communicator.rank() == 0) o.pagerank.monitor = print_changes;
  const PageRankReport report = pagerank(communicator, o.pagerank);
  print_report(report, o.json, communicator);
  return convergence_code(report.result.converged(), "the scores", communicator);
}

}  // namespace

std::function<int()> add_pagerank(const CommandLine& program) {
  const CommandLine app =
      program.add_subcommand("pagerank", "Rank the vertices of a graph by random walks, on the ranks of mpirun");
  auto options = std::make_shared<Options>();
  add_options(app, *options);
  return [app, options] {
    finish_options(app, *options);
    return run_owners(app, options->timeout, options->sharing, options->backend,
                      [&](Communicator& communicator) { return run(*options, communicator); });
  };
}

}  // namespace shardmat::tools
