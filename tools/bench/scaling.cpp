// Strong scaling: the same matrix on 1, 2, 4 … of the ranks that mpirun started, each way to move x, against perfect
// speed-up over the fewest ranks that it fits. Weak scaling: a generator some of whose numbers grow with the ranks.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "runtime/multiply.h"
#include "runtime/plan_cache.h"
#include "tools/bench/bench.h"
#include "tools/bench/options.h"
#include "tools/bench/outputs.h"
#include "tools/checks.h"
#include "tools/progress_bar.h"
#include "tools/run_ranks.h"

namespace shardmat::tools {
namespace {

using nlohmann::ordered_json;

constexpr double kMeetingSeconds = 86400;  // ranks that have nothing to do wait for those that have
constexpr const char* kScript = "plot_scaling.py";

struct Options {
  std::vector<std::string> matrices{"poisson27:n=64", "elasticity:n=32"}, exchanges{"auto"};
  std::vector<int> ranks;  ///< empty: 1, 2, 4 … and all
  std::string type = "f64", backend = "auto", kernel = "auto";
  std::int64_t right_hand_sides = 1, iterations = 200;
  bool no_overlap = false, no_verify = false, no_cache = false;
  double timeout = 60;
  Outputs outputs;
};

/// One matrix on some ranks with one exchange.
struct Case {
  std::string matrix, exchange;
  int ranks = 1;
  MultiplyReport report;  ///< on rank 0
  std::string why_not;    ///< it did not fit, or gave a wrong result; empty: it was measured
  double efficiency = 0;  ///< of perfect speed-up over the first case of the matrix; 0 without one
};

/// Numbers of the matrix in braces grow with the ranks: weak scaling.
bool grows(const std::string& matrix) { return matrix.find('{') != std::string::npos; }

/// The matrix on so many ranks: {64} stands for 64·ranks.
std::string on_ranks(const std::string& matrix, int ranks) {
  std::string result;
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    if (matrix[i] != '{') {
      result += matrix[i];
      continue;
    }
    const std::size_t end = std::min(matrix.find('}', i), matrix.size());
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(matrix.data() + i + 1, matrix.data() + end, number);
    if (end == matrix.size() || error != std::errc() || stop != matrix.data() + end || number < 1 || number > 1 << 30)
      throw Error(ErrorKind::usage, fmt::format("{}: braces hold a whole number that grows with the ranks, as in "
                                                "poisson27:n=128,nz={{64}}",
                                                matrix));
    result += std::to_string(number * ranks);
    i = end;
  }
  return result;
}

std::vector<int> rank_counts(const Options& options, int size) {
  std::vector<int> counts = options.ranks;
  if (counts.empty()) {
    for (int p = 1; p < size; p *= 2) counts.push_back(p);
    counts.push_back(size);
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  if (counts.front() < 1) throw Error(ErrorKind::usage, fmt::format("--ranks {}: there is at least one", counts.front()));
  if (counts.back() > size)
    throw Error(ErrorKind::usage,
                fmt::format("--ranks {0}: this run has {1}; start it with mpirun -n {0}", counts.back(), size));
  return counts;
}

MultiplyOptions multiply_options(const Options& options, const Case& one) {
  MultiplyOptions m;
  m.matrix = on_ranks(one.matrix, one.ranks);
  m.backend = parse_backend_choice(options.backend);
  m.load.type = parse_value_type(options.type);
  m.load.right_hand_sides = options.right_hand_sides;
  m.load.exchange = one.exchange;
  m.load.overlap = !options.no_overlap;
  m.load.plan.kernel = options.kernel;
  m.load.cache_directory = options.no_cache ? "" : default_cache_directory();
  m.iterations = options.iterations;
  m.verify = !options.no_verify;
  return m;
}

/// Collective over all ranks; those beyond one.ranks wait.
void run_case(const Options& options, Case& one, Communicator& all) {
  all.barrier();
  int kind = 0;
  if (std::optional<Communicator> some = all.first_ranks(one.ranks, options.timeout)) {
    some->on_broken([&all](const std::string& why) { all.mark_broken(why); });
    try {
      one.report = multiply(*some, multiply_options(options, one));
    } catch (const AgreedError& error) {
      one.why_not = error.what();
      kind = error.exit_code();
    }
  }
  all.set_timeout(kMeetingSeconds);
  one.why_not = all.broadcast(all.rank() == 0 ? one.why_not : std::string());
  all.set_timeout(options.timeout);
  kind = all.all_reduce(kind, Reduction::max);
  const bool cannot = kind == static_cast<int>(ErrorKind::resources) || (kind != 0 && one.exchange == "peer");
  if (kind != 0 && !cannot) all.together([&] { throw Error(static_cast<ErrorKind>(kind), one.why_not); });
  if (one.report.verification && !one.report.verification->passed)
    one.why_not = "WRONG: verification " + one.report.verification->text();
}

void find_efficiencies(std::vector<Case>& cases) {
  for (Case& one : cases) {
    const Case* first = nullptr;  // of the fewest ranks the fastest
    for (const Case& other : cases)
      if (other.matrix == one.matrix && other.why_not.empty() &&
          (first == nullptr || other.ranks < first->ranks ||
           (other.ranks == first->ranks && other.report.iteration.median < first->report.iteration.median)))
        first = &other;
    if (first == nullptr || !one.why_not.empty()) continue;
    one.efficiency = first->report.iteration.median / one.report.iteration.median;
    if (!grows(one.matrix)) one.efficiency *= static_cast<double>(first->ranks) / one.ranks;
  }
}

/// Figures of the matrix are known if one of its cases was measured.
void print_heading(const Options& options, const std::string& matrix, const std::vector<Case>& cases) {
  std::string line = matrix;
  for (const Case& one : cases)
    if (one.matrix == matrix && one.why_not.empty()) {
      const MultiplyReport& r = one.report;
      line = fmt::format("{}: {} rows, {} nonzeros, {}{}, {} on {}", matrix, human_count(r.rows), human_count(r.nnz),
                         options.type,
                         options.right_hand_sides > 1 ? fmt::format(", {} right-hand sides", options.right_hand_sides) : "",
                         r.backend, r.ranks[0].device);
      break;
    }
  fmt::print("{}\n  {:>5}  {:<10} {:>11} {:>11} {:>11} {:>11} {:>9} {:>10} {:>8}\n", line, "ranks", "exchange", "iteration",
             "product", "exchange", "not hidden", "imbalance", "efficiency", "GFLOP/s");
}

void print_table(const Options& options, const std::vector<Case>& cases) {
  const Case* before = nullptr;
  for (const Case& one : cases) {
    const MultiplyReport& r = one.report;
    if (before == nullptr || one.matrix != before->matrix) {
      if (before != nullptr) fmt::print("\n");
      print_heading(options, one.matrix, cases);
    }
    before = &one;
    if (!one.why_not.empty()) {
      fmt::print("  {:>5}  {:<10} {}\n", one.ranks, one.exchange, one.why_not);
      continue;
    }
    fmt::print("  {:>5}  {:<10} {:>11} {:>11} {:>11} {:>11} {:>9.3f} {:>8.1f} % {:>8.0f}\n", one.ranks, r.exchange,
               human_seconds(r.iteration.median), human_seconds(r.local.median), human_seconds(r.exchange_times.median),
               human_seconds(std::max(0.0, r.iteration.median - r.local.median)), r.imbalance, 100 * one.efficiency,
               r.gflops);
  }
  fmt::print(
      "\nmedians over {} iterations of the slowest rank; product and exchange: each alone; not hidden: what an iteration "
      "takes\nbeyond the product alone; imbalance: most nonzeros of a rank over the mean; efficiency: of perfect speed-up "
      "over the fastest\nof the fewest ranks\n",
      options.iterations);
}

std::string report_json(const Options& options, const std::vector<Case>& cases) {
  ordered_json list = ordered_json::array();
  for (const Case& one : cases) {
    ordered_json j{
        {"matrix", one.matrix}, {"weak", grows(one.matrix)}, {"ranks", one.ranks}, {"exchange_asked", one.exchange}};
    if (one.why_not.empty()) {
      j["efficiency"] = one.efficiency;
      j["report"] = ordered_json::parse(to_json(one.report));
    } else {
      j["why_not"] = one.why_not;
    }
    list.push_back(std::move(j));
  }
  return ordered_json{{"type", options.type},
                      {"right_hand_sides", options.right_hand_sides},
                      {"iterations", options.iterations},
                      {"overlap", !options.no_overlap},
                      {"cases", list}}
             .dump(2) +
         "\n";
}

int run(const Options& options, Communicator& all) {
  std::vector<int> counts;
  all.together([&] {
    counts = rank_counts(options, all.size());
    for (const std::string& exchange : options.exchanges) find_exchange(exchange);
    for (const std::string& matrix : options.matrices) on_ranks(matrix, 1);
    if (all.rank() == 0) require_outputs(options.outputs, kScript);
  });
  std::vector<Case> cases;
  for (const std::string& matrix : options.matrices)
    for (const int ranks : counts)
      for (std::size_t e = 0; e < (ranks == 1 ? 1 : options.exchanges.size()); ++e)
        cases.push_back({matrix, ranks == 1 ? "auto" : options.exchanges[e], ranks, {}, {}, 0});
  const Progress progress = make_progress_bar();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (all.rank() == 0)
      report(progress, "measuring", static_cast<std::int64_t>(i), static_cast<std::int64_t>(cases.size()));
    run_case(options, cases[i], all);
  }
  std::int64_t wrong = 0;
  all.together([&] {
    if (all.rank() != 0) return;
    report(progress, "measuring", static_cast<std::int64_t>(cases.size()), static_cast<std::int64_t>(cases.size()));
    find_efficiencies(cases);
    if (options.outputs.json != "-") print_table(options, cases);
    write_outputs(options.outputs, report_json(options, cases), kScript);
    wrong = std::count_if(cases.begin(), cases.end(),
                          [](const Case& one) { return one.report.verification && !one.report.verification->passed; });
  });
  wrong = all.all_reduce(wrong, Reduction::max);
  if (wrong != 0) return all.rank() == 0 ? exit_code(wrong) : static_cast<int>(ErrorKind::verification);
  all.together([&] {
    if (all.rank() == 0 && std::all_of(cases.begin(), cases.end(), [](const Case& one) { return !one.why_not.empty(); }))
      throw Error(ErrorKind::resources, "nothing could be measured: " + cases.front().why_not);
  });
  return 0;
}

}  // namespace

std::function<int()> add_bench_scaling(CLI::App& bench) {
  CLI::App* app =
      bench.add_subcommand("scaling", "The same matrix on 1, 2, 4 … ranks: time, efficiency, what the exchange costs");
  auto options = std::make_shared<Options>();
  Options& o = *options;
  app->add_option("matrices", o.matrices,
                  "shard files or generators; numbers in braces grow with the ranks: poisson27:n=128,nz={64}")
      ->capture_default_str();
  app->add_option("--ranks", o.ranks, "how many ranks to use, one run each (1, 2, 4 … and all)")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_list(*app, "--exchange", o.exchanges, "ways to move x, one run each");
  app->add_option("--type", o.type, "f64 or f32; with --rhs f16 and bf16, too")
      ->check(CLI::IsMember({"f64", "f32", "f16", "bf16"}))
      ->capture_default_str();
  app->add_option("--rhs", o.right_hand_sides, "right-hand sides at once")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--kernel", o.kernel, "kernel by name, or auto")->capture_default_str();
  app->add_option("--backend", o.backend, "auto, host or cuda")
      ->check(CLI::IsMember({"auto", "host", "cuda"}))
      ->capture_default_str();
  app->add_option("--iterations", o.iterations, "products to time")
      ->check(whole_number(1, std::numeric_limits<std::int64_t>::max()))
      ->capture_default_str();
  app->add_flag("--no-overlap", o.no_overlap, "move x before any row is multiplied");
  app->add_flag("--no-verify", o.no_verify, "do not compare each first product with a sequential one");
  app->add_flag("--no-cache", o.no_cache, "choose kernels anew");
  app->add_option("--timeout", o.timeout, "seconds after which a rank that does not answer is given up")
      ->check(positive_number())
      ->capture_default_str();
  app->add_option("--json", o.outputs.json, "write the report as JSON to this file; - for standard output")
      ->check(output_name());
  app->add_option("--plot", o.outputs.plot,
                  "draw time and efficiency to this file (.svg, .png or .pdf; needs python3-matplotlib)")
      ->check(output_name());
  app->footer(
      "\nExamples:\n  mpirun -n 4 shardmat bench scaling poisson27:n=256 --exchange auto,allgather --plot strong.svg\n"
      "  mpirun -n 4 shardmat bench scaling 'poisson27:n=256,nz={64}' --json weak.json\n");
  return [options] { return run_ranks(options->timeout, [&](Communicator& all) { return run(*options, all); }); };
}

}  // namespace shardmat::tools
