// Runs a scaling study. Strong scaling: the same matrix on 1, 2, 4 … of the ranks that mpirun started, each way to move x,
// against perfect speed-up over the fewest ranks that it fits. Weak scaling: a generator some of whose numbers grow with the
// ranks. With --solve also times to solution. A study whose file is unfinished goes on where it was stopped.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/nccl/nccl_communicator.h"
#include "comm/placement.h"
#include "kernels/base/device.h"
#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/base/shortened.h"
#include "partition/files/atomic_file.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/plan_cache.h"
#include "runtime/run/multiply.h"
#include "runtime/run/solve.h"
#include "runtime/solvers/loop/method.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/method_choice.h"
#include "runtime/solvers/solver_settings.h"
#include "tools/bench/bench.h"
#include "tools/bench/first_ranks.h"
#include "tools/bench/machine.h"
#include "tools/bench/options.h"
#include "tools/bench/outputs.h"
#include "tools/bench/scaling_forecast.h"
#include "tools/bench/scaling_report.h"
#include "tools/bench/scaling_solve.h"
#include "tools/bench/study_file.h"
#include "tools/bench/study_runs.h"
#include "tools/cli/checks.h"
#include "tools/cli/environment.h"
#include "tools/cli/growing_matrix.h"
#include "tools/cli/help_text.h"
#include "tools/cli/input_matrix.h"
#include "tools/cli/plot.h"
#include "tools/cli/progress_bar.h"
#include "tools/cli/report_option.h"
#include "tools/cli/run_ranks.h"
#include "tools/cli/stop_signal.h"
#include "tools/cli/write_text.h"

namespace shardmat::tools {
namespace {

constexpr const char* kPlotScript = "plot_scaling.py";
constexpr const char* kNotYet = "not measured yet: the study did not end, or still runs";
constexpr const char* kHtmlScript = "scaling_html.py";

struct Options {
  std::vector<std::string> matrices{"poisson27:n=64", "elasticity:n=32"}, exchanges{"auto", "allgather"};
  std::vector<int> ranks;  ///< empty: 1, 2, 4 … and all
  int threads = 0;         ///< host threads of each rank; 0: cores over the most ranks
  std::string type = "f64", backend = "auto", kernel = "auto";
  std::int64_t right_hand_sides = 1, column_block = 0, iterations = 200;
  bool overlap = false, no_overlap = false, no_verify = false, no_cache = false, no_forecast = false;
  bool solve = false, no_products = false, anew = false;
  std::vector<std::string> preconditioners{"auto"};
  std::string solver = "auto", settings;
  int repetitions = 3;
  double timeout = 60;
  Outputs outputs;
  std::string csv, html;
};

std::vector<int> rank_counts(const Options& options, int size) {
  std::vector<int> counts = options.ranks;
  if (counts.empty()) {
    for (int p = 1; p < size; p *= 2) counts.push_back(p);
    counts.push_back(size);
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  if (counts.front() < 1)
    throw Error(ErrorKind::usage, fmt::format("{} ranks: there is at least one", counts.front()), "ranks");
  if (counts.back() > size)
    throw Error(ErrorKind::usage,
                fmt::format("--ranks {0}: this run has {1}; start it with mpirun -n {0}", counts.back(), size));
  return counts;
}

Overlap overlap_of(const Options& options) {
  return options.overlap ? Overlap::yes : options.no_overlap ? Overlap::no : Overlap::automatic;
}

/// The host threads that every rank has in every case, so that cases differ in their ranks only. In the largest case each
/// rank has its share of the cores, at least one thread, and in smaller cases as many. 0 on GPUs, whose hosts do not
/// multiply. Collective.
int threads_of_study(const Options& options, int most_ranks, Communicator& all) {
  if (options.threads > 0) return options.threads;
  const int gpus = options.backend == "host" ? 0 : all.all_reduce(cuda_device_count(), Reduction::min);
  if (gpus > 0 || options.backend == "cuda") return 0;
  all.barrier();
  int threads = 0;
  if (std::optional<Communicator> most = all.first_ranks(most_ranks, options.timeout)) {
    threads = most->all_reduce(threads_of_environment(share_cores(*most).threads), Reduction::min);
  }
  return all.all_reduce(threads, Reduction::max);
}

/// What products and solves of a study have in common. `products`: how many a choice of kernels is for.
LoadOptions load_options(const Options& options, double products) {
  LoadOptions load;
  load.type = parse_value_type(options.type);
  load.right_hand_sides = options.right_hand_sides;
  load.overlap = overlap_of(options);
  load.plan.kernel = options.kernel;
  load.plan.products = products;
  load.cache_directory = options.no_cache ? "" : default_cache_directory();
  return load;
}

MultiplyOptions multiply_options(const Options& options, const ScalingCase& one) {
  MultiplyOptions m;
  m.matrix = on_ranks(one.matrix, one.ranks);
  m.backend = parse_backend_choice(options.backend);
  m.threads = options.threads;
  m.load = load_options(options, 1e6);  // a study is of what lasts
  m.load.column_block = options.column_block;
  require_column_block(options.right_hand_sides, options.column_block);
  m.load.exchange = one.exchange;
  m.iterations = options.iterations;
  m.verify = !options.no_verify;
  return m;
}

SolveOptions solve_options(const Options& options, const SolveCase& one) {
  SolveOptions s;
  s.matrix = on_ranks(one.matrix, one.ranks);
  s.backend = parse_backend_choice(options.backend);
  s.threads = options.threads;
  s.load = load_options(options, 1000);  // a solve takes hundreds of products
  s.solver.solver = options.solver;
  s.solver.preconditioner = one.preconditioner;
  take_settings(options.settings, s.solver);
  s.advice = false;  // it would be measured, too
  return s;
}

/// What decides the figures of a study, as JSON: a study goes on only if all of it is the same.
std::string asked_of(const Options& o, const std::vector<int>& ranks) {
  nlohmann::ordered_json asked{{"matrices", o.matrices},
                               {"ranks", ranks},
                               {"exchanges", o.exchanges},
                               {"threads", o.threads},
                               {"type", o.type},
                               {"right_hand_sides", o.right_hand_sides},
                               {"column_block", o.column_block},
                               {"iterations", o.iterations},
                               {"overlap", o.overlap      ? "yes"
                                           : o.no_overlap ? "no"
                                                          : "auto"},
                               {"kernel", o.kernel},
                               {"backend", o.backend},
                               {"verify", !o.no_verify},
                               {"forecast", !o.no_forecast},
                               {"products", !o.no_products}};
  if (o.solve)
    asked.update({{"solver", o.solver},
                  {"preconditioners", o.preconditioners},
                  {"settings", o.settings},
                  {"repetitions", o.repetitions}});
  return asked.dump();
}

/// Collective over the ranks of the case.
template <class Case>
void find_cores(Case& one, Communicator& some) {
  const std::vector<CoreShare> all = some.all_gather(share_cores(some));
  const auto fewest = std::min_element(all.begin(), all.end(), [](const CoreShare& a, const CoreShare& b) {
    return std::int64_t{a.cores} * b.ranks < std::int64_t{b.cores} * a.ranks;
  });
  one.host_ranks = fewest->ranks, one.host_cores = fewest->cores;
}

/// Collective over all ranks; those beyond one.ranks wait.
void run_case(const Options& options, ScalingCase& one, Communicator& all) {
  const Refusal refused = on_first_ranks(all, one.ranks, options.timeout, [&](Communicator& some) {
    one.report = multiply(some, multiply_options(options, one));
    find_cores(one, some);
  });
  one.why_not = refused.why;
  if (refused.kind != 0 && refused.kind != static_cast<int>(ErrorKind::resources))
    all.run_agreed([&] { throw Error(static_cast<ErrorKind>(refused.kind), one.why_not, refused.setting); });
  if (one.report.verification && !one.report.verification->passed)
    one.why_not = fmt::format("{}: verification {}", kWrong, one.report.verification->text());
}

/// The same of solves. What did not converge has no figures.
void run_solves(const Options& options, SolveCase& one, Communicator& all) {
  one.why_not.clear();
  const Refusal refused = on_first_ranks(all, one.ranks, options.timeout, [&](Communicator& some) {
    measure_solves(one, solve_options(options, one), options.repetitions, some);
    find_cores(one, some);
  });
  if (!refused.why.empty()) one.why_not = refused.why;
  if (refused.kind != 0 && refused.kind != static_cast<int>(ErrorKind::resources))
    all.run_agreed([&] { throw Error(static_cast<ErrorKind>(refused.kind), refused.why, refused.setting); });
}

/// Throws, before long work, what write_files() would throw.
void require_files(const Options& options) {
  if (options.outputs.json == "-" && options.csv == "-")
    throw Error(ErrorKind::usage, "JSON and CSV would mix on standard output; name a file for one of them", "csv");
  if (options.html == "-") throw Error(ErrorKind::usage, "a page goes to a file; name one", "html");
  require_outputs(options.outputs, kPlotScript, options.matrices, {options.csv, options.html});
  check_report_file(options.csv);
  if (options.html.empty()) return;
  check_report_file(options.html);
  require_plot_script(kHtmlScript, "--html");
}

void write_files(const Options& options, const ScalingStudy& study, const GrowingReport& file) {
  if (options.outputs.json != "-" && options.csv != "-") fmt::print("{}", table(study));
  const nlohmann::ordered_json json = to_json(study);
  if (!options.csv.empty()) write_text(options.csv, to_csv(study));
  file.finish(json);
  if (!options.html.empty()) plot(kHtmlScript, document(json, true), options.html, "--html");
}

/// Throws if nothing could be measured, or nothing with several ranks although that was asked for.
void require_figures(const ScalingStudy& study) {
  for (const int fewest : {1, 2}) {
    const auto asked = [&](const ScalingCase& one) { return one.ranks >= fewest; };
    const auto one = std::find_if(study.cases.begin(), study.cases.end(), asked);
    if (one != study.cases.end() &&
        std::none_of(one, study.cases.end(), [&](const ScalingCase& c) { return asked(c) && c.measured(); }))
      throw Error(ErrorKind::resources,
                  fmt::format("nothing could be measured{}: {}", fewest > 1 ? " with several ranks" : "", one->why_not));
  }
  if (!study.solves.empty() &&
      std::none_of(study.solves.begin(), study.solves.end(), [](const SolveCase& c) { return c.measured(); }))
    throw Error(ErrorKind::resources, fmt::format("no solve could be measured: {}", study.solves.front().why_not));
}

/// When, how and with what it was measured.
void describe(ScalingStudy& study, const Communicator& all) {
  study.command = command_line();
  study.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  study.host = all.host();
  std::error_code ignored;
  study.folder = std::filesystem::current_path(ignored).string();
  study.ranks = all.size();
  const bool gpu = std::any_of(study.cases.begin(), study.cases.end(),
                               [](const ScalingCase& one) { return one.measured() && one.report.backend == "cuda"; });
  study.software = software_versions(properties({gpu ? Backend::cuda : Backend::host, 0}));
  if (gpu) study.software += ", NCCL " + nccl_version();
  char mpi[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  if (MPI_Get_library_version(mpi, &length) == MPI_SUCCESS) {
    const std::string_view text(mpi, static_cast<std::size_t>(length));
    study.software += fmt::format(", {}", text.substr(0, text.find_first_of(",\n")));
  }
}

/// A study can take hours: what it has found is in the files after every case.
void save_so_far(const Options& options, ScalingStudy& study, const Communicator& all, const GrowingReport& file) {
  find_efficiencies(study.cases);
  find_efficiencies(study.solves);
  describe(study, all);
  if (is_rewritable(options.csv)) write_text(options.csv, to_csv(study));
  file.save([&] { return to_json(study); });
}

/// What is to be measured, in this order.
struct Plan {
  std::vector<SolveCase> solves;
  std::int64_t all = 0;
};

Plan plan_cases(const Options& options, const std::vector<int>& counts, ScalingStudy& study) {
  Plan plan;
  for (const std::string& matrix : options.matrices)
    for (const int ranks : counts) {
      for (std::size_t e = 0; !options.no_products && e < (ranks == 1 ? 1 : options.exchanges.size()); ++e) {
        ScalingCase& one = study.to_come.emplace_back();
        one.matrix = matrix, one.ranks = ranks, one.exchange = ranks == 1 ? "auto" : options.exchanges[e];
        one.why_not = kNotYet;
      }
      for (std::size_t p = 0; options.solve && p < options.preconditioners.size(); ++p) {
        SolveCase& one = plan.solves.emplace_back();
        one.matrix = matrix, one.ranks = ranks, one.preconditioner = options.preconditioners[p];
      }
    }
  plan.all = std::ssize(study.to_come) + std::ssize(plan.solves);
  return plan;
}

/// Takes what an unfinished study in the file has measured, and says so. Collective.
void go_on(const Options& options, ScalingStudy& study, Plan& plan, Communicator& all) {
  std::string text;
  all.run_agreed([&] {
    if (all.rank() == 0 && !options.anew && is_rewritable(options.outputs.json))
      text = unfinished_study(options.outputs.json, study.asked);
  });
  text = all.broadcast(text);
  if (text.empty()) return;
  all.run_agreed([&] {
    try {
      take_measured(text, study, plan.solves);
    } catch (const nlohmann::json::exception& error) {
      throw Error(ErrorKind::input,
                  fmt::format("{} holds an unfinished study that this version cannot read ({}); measure all anew, or name "
                              "another file",
                              options.outputs.json, shortened(error.what())),
                  "anew");
    }
  });
  const std::int64_t measured = std::ssize(study.cases) + std::ssize(study.solves);
  if (all.rank() == 0)
    print_news(
        fmt::format("Going on with {}: {} of {} cases were measured before\n", options.outputs.json, measured, plan.all));
}

/// This run among those of the study. Collective.
void begin_run(ScalingStudy& study, Communicator& all) {
  const std::string now = look_at_run(all);
  if (!study.runs.empty() && all.rank() == 0)
    if (const std::string others = differences_of_runs(study.runs.back(), now); !others.empty())
      print_news(fmt::format("The part before ran otherwise: {}. Times may differ for that reason\n", others));
  study.runs.push_back(joined_run(now, now, 0));
}

/// Measures what is to come; the files have every case as soon as it is measured. Collective.
void measure_all(const Options& options, ScalingStudy& study, Plan& plan, Communicator& all, const GrowingReport& file) {
  const Progress progress = make_progress_bar();
  const std::int64_t before = std::ssize(study.cases) + std::ssize(study.solves);
  const auto done = [&] { return std::ssize(study.cases) + std::ssize(study.solves); };
  const auto save = [&] {
    study.runs.back() = joined_run(study.runs.back(), study.runs.back(), static_cast<std::size_t>(done() - before));
    all.run_agreed([&] {
      if (all.rank() == 0) save_so_far(options, study, all, file);
    });
  };
  const auto tell = [&] {
    if (all.rank() == 0) report(progress, "measuring", done(), plan.all);
  };
  while (!study.to_come.empty()) {
    tell();
    ScalingCase one = study.to_come.front();
    run_case(options, one, all);
    study.cases.push_back(std::move(one));
    study.to_come.erase(study.to_come.begin());
    save();
  }
  for (SolveCase& one : plan.solves) {
    tell();
    run_solves(options, one, all);
    study.solves.push_back(std::move(one));
    save();
  }
  tell();
  if (!options.no_forecast)
    forecast_cases(study, all, options.timeout, [&](const ScalingCase& one) { return multiply_options(options, one); });
  study.runs.back() = joined_run(study.runs.back(), look_at_run(all), static_cast<std::size_t>(done() - before));
}

/// Collective: throws what is wrong with the options, before long work.
std::vector<int> check_options(const Options& options, Communicator& all) {
  return all.run_agreed([&] {
    std::vector<int> counts = rank_counts(options, all.size());
    for (const std::string& exchange : options.exchanges) find_exchange(exchange);
    for (const std::string& matrix : options.matrices) on_ranks(matrix, 1);
    if (options.no_products && !options.solve)
      throw Error(ErrorKind::usage, "nothing is left to measure without products; ask for solves", "solve");
    if (options.no_products && !options.csv.empty())
      throw Error(ErrorKind::usage, "the CSV file has the products alone; leave it out, or measure products, too", "csv");
    if (options.solve) {
      if (options.type != "f64" && options.type != "f32")
        throw Error(ErrorKind::usage, fmt::format("solvers take f64 and f32, not {}", options.type), "type");
      if (options.solver != kAutomaticMethod) find_method(options.solver);
      for (const std::string& one : options.preconditioners) {
        if (one != kAutomaticPreconditioner) find_preconditioner(one);
        SolverOptions settings;
        settings.solver = options.solver, settings.preconditioner = one;
        take_settings(options.settings, settings);
      }
    }
    if (all.rank() == 0) require_files(options);
    return counts;
  });
}

int run(Options options, Communicator& all) {
  const std::vector<int> counts = check_options(options, all);
  options.threads = threads_of_study(options, counts.back(), all);
  ScalingStudy study;
  study.threads = options.threads;
  study.type = options.type;
  study.right_hand_sides = options.right_hand_sides;
  study.iterations = options.iterations;
  study.overlap = overlap_of(options);
  study.asked = asked_of(options, counts);
  Plan plan = plan_cases(options, counts, study);
  go_on(options, study, plan, all);
  begin_run(study, all);
  const GrowingReport file(options.outputs, kPlotScript, all);
  measure_all(options, study, plan, all, file);
  std::int64_t wrong = 0;
  all.run_agreed([&] {
    if (all.rank() != 0) return;
    find_efficiencies(study.cases);
    find_efficiencies(study.solves);
    describe(study, all);
    write_files(options, study, file);
    wrong = std::count_if(study.cases.begin(), study.cases.end(), [](const ScalingCase& one) {
      return one.report.verification && !one.report.verification->passed;
    });
  });
  wrong = all.all_reduce(wrong, Reduction::max);
  if (wrong != 0) return all.rank() == 0 ? exit_code(wrong) : static_cast<int>(ErrorKind::verification);
  all.run_agreed([&] {
    if (all.rank() == 0) require_figures(study);
  });
  return 0;
}

void add_case_options(const CommandLine& app, Options& o) {
  app.add_option("matrices", o.matrices,
                 "matrix files (" + known_suffixes() +
                     ") or generators; numbers in braces grow with the ranks: poisson27:n=128,nz={64}")
      ->capture_default_str();
  app.in(Topic::machine)
      .add_option("--ranks", o.ranks, "numbers of ranks, a case for each (default: 1, 2, 4 … and all)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->common();
  app.in(Topic::machine)
      .add_option("--threads", o.threads,
                  "host threads of each rank, the same in all cases (default: OMP_NUM_THREADS, else the cores of a host "
                  "divided by its ranks in the largest case; on GPUs, by its ranks in each case)")
      ->check(whole_number(1, 1 << 16));
  add_list(app.in(Topic::computation), "--exchange", o.exchanges,
           "ways to move x between ranks, a case for each; allgather stands beside the chosen one unless this names others" +
               choices("Choices", names_of(exchanges(), {"auto"})))
      ->common();
}

void add_product_options(const CommandLine& app, Options& o) {
  app.in(Topic::input)
      .add_option("--type", o.type, "type of the values; f16 and bf16 need --rhs")
      ->check(one_of({"f64", "f32", "f16", "bf16"}))
      ->capture_default_str()
      ->common();
  app.in(Topic::input)
      .add_option("--rhs", o.right_hand_sides, "number of right-hand sides that are multiplied at once")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str()
      ->common();
  app.in(Topic::computation)
      .add_option("--kernel", o.kernel, "kernel by name, or auto; see shardmat help multiply")
      ->capture_default_str();
  add_backend_option(app, o.backend);
  app.in(Topic::computation)
      .add_option("--iterations", o.iterations, "number of products to time")
      ->check(whole_number(1, std::numeric_limits<std::int64_t>::max()))
      ->capture_default_str()
      ->common();
  const Option overlap =
      app.in(Topic::computation)
          .add_flag(
              "--overlap", o.overlap,
              "multiply rows that need no x of other ranks while x moves. Without --rhs this is the default; with --rhs "
              "it takes two products");
  app.in(Topic::computation)
      .add_flag("--no-overlap", o.no_overlap, "multiply no row before x has arrived")
      ->excludes(overlap);
  app.in(Topic::computation)
      .add_option("--column-block", o.column_block,
                  "number of right-hand sides that are moved and multiplied at a time; see shardmat help multiply")
      ->check(whole_number(2, 1 << 20))
      ->excludes(overlap);
  app.in(Topic::computation)
      .add_flag("--no-verify", o.no_verify, "do not compare the first product of each case with a sequential one");
  app.in(Topic::computation).add_flag("--no-cache", o.no_cache, "neither use nor store measured choices of kernels");
  app.in(Topic::computation)
      .add_flag("--no-forecast", o.no_forecast, "do not predict the time of each case with the model of shardmat predict");
  app.in(Topic::machine)
      .add_option("--timeout", o.timeout, "stop if a rank has not answered for X seconds")
      ->check(positive_number())
      ->capture_default_str();
}

void add_solve_options(const CommandLine& app, Options& o) {
  const Option solve =
      app.in(Topic::computation)
          .add_flag("--solve", o.solve,
                    "also solve A x = 1 in every case: set-up, solve and iterations, from the rows on the ranks")
          ->common();
  app.in(Topic::computation).add_flag("--no-products", o.no_products, "with --solve: leave the products out")->needs(solve);
  add_list(app.in(Topic::computation), "--preconditioner", o.preconditioners,
           "preconditioners of the solves, a case for each; auto takes multigrid where it suits" +
               choices("Choices", names_of(preconditioners(), {"auto"})))
      ->needs(solve)
      ->common();
  app.in(Topic::computation)
      .add_option("--solver", o.solver, "method of the solves" + choices("Choices", names_of(methods(), {"auto"})))
      ->capture_default_str()
      ->needs(solve);
  app.in(Topic::computation)
      .add_option("--settings", o.settings,
                  "more settings of the solvers, as \"rtol=1e-10 restart=50\": names of the options of shardmat solve")
      ->needs(solve);
  app.in(Topic::computation)
      .add_option("--repetitions", o.repetitions, "how often each system is solved; the median counts")
      ->check(whole_number(1, 1000))
      ->capture_default_str()
      ->needs(solve);
}

void add_output_options(const CommandLine& app, Options& o) {
  add_json_option(app, o.outputs.json, ", anew after every case. If FILE holds an unfinished study, it goes on");
  app.in(Topic::computation)
      .add_flag("--anew", o.anew, "measure all cases again, even if the JSON file holds an unfinished study");
  app.in(Topic::output)
      .add_option("--csv", o.csv,
                  "write a CSV file with a line for each case to FILE, anew after every case; - for standard output. The "
                  "columns are listed below")
      ->check(output_name())
      ->type_name("FILE");
  app.in(Topic::output)
      .add_option("--plot", o.outputs.plot,
                  "draw time, efficiency and where the time goes to FILE (.svg, .png or .pdf; needs python3-matplotlib)")
      ->check(plot_name())
      ->type_name("FILE")
      ->common();
  app.in(Topic::output)
      .add_option("--html", o.html,
                  "write a page with pictures, tables and all figures to FILE; it needs no other file (needs "
                  "python3-matplotlib)")
      ->check(output_name())
      ->type_name("FILE")
      ->common();
}

}  // namespace

std::function<int()> add_bench_scaling(const CommandLine& bench) {
  const CommandLine app = bench.add_subcommand(
      "scaling", "A matrix on 1, 2, 4 … ranks (strong or weak scaling): products and solves, and where the time goes");
  auto options = std::make_shared<Options>();
  add_case_options(app, *options);
  add_product_options(app, *options);
  add_solve_options(app, *options);
  add_output_options(app, *options);
  app.footer(std::string("\nExamples:\n  mpirun -n 4 shardmat bench scaling poisson27:n=256 --html strong.html\n"
                         "  mpirun -n 4 shardmat bench scaling 'poisson27:n=256,nz={64}' --csv weak.csv\n"
                         "  mpirun -n 4 shardmat bench scaling 'poisson7:n=100,nz={100}' --solve --json weak.json\n"
                         "\nColumns of the CSV file (RFC 4180, SI units):\n") +
             csv_help());
  return [app, options] { return run_ranks(app, options->timeout, [&](Communicator& all) { return run(*options, all); }); };
}

}  // namespace shardmat::tools
