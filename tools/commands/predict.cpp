// What an iteration would take on any number of ranks, from the report of a scaling study.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "partition/files/object_name.h"
#include "partition/generators/generator.h"
#include "partition/source/partitioner.h"
#include "tools/cli/checks.h"
#include "tools/cli/command.h"
#include "tools/cli/environment.h"
#include "tools/cli/forecast.h"
#include "tools/cli/help_text.h"
#include "tools/cli/input_matrix.h"
#include "tools/cli/report_option.h"
#include "tools/cli/write_report.h"
#include "tools/cli/write_text.h"

namespace shardmat::tools {
namespace {

using nlohmann::ordered_json;

struct Options {
  std::string report, matrix, json;
  std::vector<int> ranks;  ///< empty: 1, 2, 4 … as far as the links are known
  std::string method = "nnz";
  Network network;
  int ranks_per_host = 0;  ///< 0: not known
};

/// On as many hosts as the prediction is for; without --ranks-per-host on any number of them, the fastest.
std::optional<double> measured(const StudiedMatrix& studied, int ranks) {
  std::optional<double> least;
  for (const MeasuredIteration& one : studied.measured)
    if (one.ranks == ranks && (studied.model.ranks_per_host == 0 || one.hosts == studied.model.hosts(ranks)))
      least = std::min(least.value_or(one.seconds), one.seconds);
  return least;
}

/// More than so many times the measured ranks is far from what was measured.
constexpr int kFar = 4;

bool is_extrapolated(const StudiedMatrix& studied, int ranks) {
  return ranks / kFar > studied.model.measured_ranks || (ranks / kFar == studied.model.measured_ranks && ranks % kFar != 0);
}

/// Of perfect speed-up over one rank, which takes `one` seconds; NaN where nothing takes any time.
double efficiency(const RanksForecast& f, double one) { return one / f.forecast.iteration / f.ranks; }

std::string percent(double share) { return std::isfinite(share) ? fmt::format("{:.1f} %", 100 * share) : "-"; }

void print(const StudiedMatrix& studied, const RowSource& matrix, const std::vector<RanksForecast>& found, double one) {
  fmt::print("{}: {} rows\n  {}\n", matrix.name(), human_count(matrix.rows()), describe(studied.model));
  const bool hosts = studied.model.ranks_per_host > 0;
  if (hosts) fmt::print("  {} a host\n", human_count(studied.model.ranks_per_host, "rank"));
  fmt::print("  {:>6} {}{:>13} {:>9} {:>12} {}{:>6} {:>10} {:>10}  {:<9} {:>10} {:>11} {:>10} {:>11} {:>8}\n", "ranks",
             hosts ? " hosts " : "", "nnz of one", "imbalance", "halo", hosts ? "other hosts " : "", "from", "product",
             "exchange", "by", "unsteady", "iteration", "efficiency", "measured", "off by");
  for (const RanksForecast& f : found) {
    const auto seconds = measured(studied, f.ranks);
    fmt::print("  {:>6} {}{:>13} {:>9.3f} {:>12} {}{:>6} {:>10} {:>10}  {:<9} {:>10} {:>11} {:>10} {:>11} {:>8}{}\n",
               f.ranks, hosts ? fmt::format("{:>6} ", studied.model.hosts(f.ranks)) : "", human_count(f.quality.nnz_max),
               f.quality.imbalance, human_count(f.quality.halo_max),
               hosts ? fmt::format("{:>11} ", human_count(f.between.entries)) : "", f.quality.neighbours_max,
               human_seconds(f.forecast.product), human_seconds(f.forecast.exchange), f.forecast.moved_by,
               human_seconds(f.forecast.unsteady), human_seconds(f.forecast.iteration), percent(efficiency(f, one)),
               seconds ? human_seconds(*seconds) : "", seconds ? human_change(f.forecast.iteration / *seconds - 1) : "",
               is_extrapolated(studied, f.ranks) ? " extrapolated" : "");
  }
  for (const std::string& doubt : studied.doubts) fmt::print("  doubtful, for the study says of {}\n", doubt);
}

ordered_json to_json(const StudiedMatrix& studied, const RowSource& matrix, const std::vector<RanksForecast>& found,
                     double one) {
  ordered_json list = ordered_json::array();
  for (const RanksForecast& f : found) {
    list.push_back({{"ranks", f.ranks},
                    {"nnz_max", f.quality.nnz_max},
                    {"imbalance", f.quality.imbalance},
                    {"halo_max", f.quality.halo_max},
                    {"neighbours_max", f.quality.neighbours_max},
                    {"boundary_nnz_max", f.quality.boundary_nnz_max},
                    {"sent_max", f.quality.sent_max},
                    {"product_s", f.forecast.product},
                    {"exchange_s", f.forecast.exchange},
                    {"exchange", f.forecast.moved_by},
                    {"overlapped", f.forecast.overlapped},
                    {"unsteady_s", f.forecast.unsteady},
                    {"iteration_s", f.forecast.iteration},
                    {"efficiency", efficiency(f, one)},
                    {"extrapolated", is_extrapolated(studied, f.ranks)}});
    if (studied.model.ranks_per_host > 0)
      list.back().update({{"hosts", studied.model.hosts(f.ranks)},
                          {"between_hosts_max", f.between.entries},
                          {"messages_between_hosts_max", f.between.messages},
                          {"between_hosts_once_max", std::max<std::int64_t>(0, f.between.host_entries)},
                          {"hosts_that_send_max", f.between.host_messages}});
    if (const auto seconds = measured(studied, f.ranks)) list.back()["measured_s"] = *seconds;
  }
  return {{"matrix", matrix.name()}, {"model", tools::to_json(studied.model)}, {"ranks", list}, {"doubts", studied.doubts}};
}

/// 1, 2, 4 … and all whose links are known: those measured or of a host, with a network up to 4096.
std::vector<int> usual_ranks(const PerformanceModel& model) {
  const int known = model.ranks_per_host > 0 && !model.exchanges.empty() ? model.ranks_per_host : model.measured_ranks;
  const int most = model.network ? 4096 : known;
  std::vector<int> ranks;
  for (int count = 1; count < most; count *= 2) ranks.push_back(count);
  ranks.push_back(most);
  return ranks;
}

/// Takes the "/s" off "25GB/s"; goes before what reads the rest.
ValueCheck per_second() {
  return ValueCheck([](std::string& text) {
    if (text.ends_with("/s")) text.resize(text.size() - 2);
    return std::string();
  });
}

/// The matrix as it is found here, in the folder where the study was made, or beside the study.
std::string find_studied(const std::string& matrix, const Options& options) {
  namespace fs = std::filesystem;
  if (!options.matrix.empty() || fs::path(matrix).is_absolute() || is_generator_specification(matrix)) return matrix;
  for (const fs::path& folder :
       {fs::path(), fs::path(folder_of_study(options.report)), fs::path(options.report).parent_path()})
    if (const std::string name = folder / matrix; names_input_file(split_object_name(name).file)) return name;
  return matrix;
}

InputMatrix open_studied(const std::string& matrix, const Options& options) {
  try {
    return open_input(find_studied(matrix, options), true, false);
  } catch (const Error& error) {
    if (!options.matrix.empty() || error.kind() != ErrorKind::input) throw;
    throw Error(ErrorKind::input,
                fmt::format("{} ({} names this file. It was looked for in this folder, in the folder of the "
                            "study and in the folder of the report)",
                            error.what(), options.report),
                "matrix");
  }
}

void predict(const Options& options) {
  require_spared({{options.report, "the report"}, {options.matrix, "the matrix"}}, {options.json});
  check_report_file(options.json);
  std::vector<StudiedMatrix> report = read_study(options.report);
  if (!options.matrix.empty()) {  // another one, at the speed of the first
    report.resize(1);
    report[0].matrix = options.matrix;
    report[0].measured.clear();  // its doubts stay: they are of the speed
  }
  ordered_json list = ordered_json::array();
  for (StudiedMatrix& studied : report) {
    if (options.network.bandwidth > 0) studied.model.network = options.network;
    studied.model.ranks_per_host = options.ranks_per_host;
    const InputMatrix input = open_studied(studied.matrix, options);
    const std::vector<int> ranks = options.ranks.empty() ? usual_ranks(studied.model) : options.ranks;
    const auto found = forecast_ranks(studied.model, *input.rows, {&options.method, 1}, ranks);
    const double one =
        measured(studied, 1).value_or(studied.model.product(std::llround(found[0].quality.nnz_mean * found[0].ranks)));
    if (options.json != "-") fmt::print("{}", &studied == report.data() ? "" : "\n");
    if (options.json != "-") print(studied, *input.rows, found, one);
    list.push_back(to_json(studied, *input.rows, found, one));
  }
  if (!options.json.empty()) write_report(options.json, list.dump(2) + "\n");
}

}  // namespace

std::function<int()> add_predict(const CommandLine& program) {
  const CommandLine app = program.add_subcommand("predict", "Predict the time of an iteration on any number of ranks");
  auto options = std::make_shared<Options>();
  Options& o = *options;
  app.add_option("report", o.report, "JSON report of shardmat bench scaling that has a case on one rank")->required();
  app.in(Topic::input)
      .add_option("--matrix", o.matrix, "predict for this matrix, at the speed per nonzero of the report's first matrix")
      ->common();
  app.in(Topic::machine)
      .add_option("--ranks", o.ranks,
                  "numbers of ranks (default: 1, 2, 4 … up to the ranks of the study, or of a host; with a network up to "
                  "4096). Rows beyond 4 times the ranks of the study are marked \"extrapolated\"")
      ->delimiter(',')
      ->check(whole_number(1, 1'000'000))
      ->common();
  app.in(Topic::computation)
      .add_option("--method", o.method,
                  "give each part the same number of nonzeros (nnz) or rows" + choices("Choices", names_of(partitioners())))
      ->capture_default_str()
      ->common();
  app.in(Topic::machine)
      .add_option(
          "--ranks-per-host", o.ranks_per_host,
          "ranks of a host, whose links are those of the study; the network joins the hosts. Without it, the network "
          "joins all ranks that are more than the study had")
      ->check(whole_number(1, 1'000'000))
      ->common();
  const std::vector<std::pair<std::string, double>> times{{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}},
      rates{{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
  const Option latency = app.in(Topic::machine)
                             .add_option("--network-latency", o.network.latency,
                                         "time of a message if there are more ranks than in the study, e.g. 5us")
                             ->option_text("TIME")
                             ->transform(number_with_unit(times));
  const Option bandwidth =
      app.in(Topic::machine)
          .add_option(
              "--network-bandwidth", o.network.bandwidth,
              "bytes a second that a rank sends, and also receives, if there are more ranks than in the study, e.g. 25GB")
          ->option_text("BYTES")
          ->transform(number_with_unit(rates))
          ->transform(per_second())
          ->check(positive_number())
          ->needs(latency);
  latency->needs(bandwidth);
  add_json_option(app, o.json);
  app.footer(
      "The prediction assumes that each rank has its own device, and that rows which need no x of other ranks are "
      "multiplied "
      "while x moves. Its constants come from the study: the products on one rank, how much their times vary, and the "
      "exchanges between ranks. It uses "
      "no iterations on several ranks, so these can be compared with it. Between hosts, and for more ranks than the study "
      "had where no hosts are named, it uses the network's latency and bandwidth. With several ranks a host, it also "
      "predicts "
      "two_level, by which entries cross the network once for each host. Ranks wait for the slowest of them "
      "(unsteady): the more ranks, the rarer the disturbances that count.\n"
      "\nExamples:\n  mpirun -n 4 shardmat bench scaling poisson27:n=256 --json study.json\n"
      "  shardmat predict study.json --ranks 1,2,4\n"
      "  shardmat predict study.json --ranks 8,64,512 --network-latency 5us --network-bandwidth 25GB\n"
      "  shardmat predict study.json --ranks-per-host 8 --network-latency 5us --network-bandwidth 25GB\n");
  return [options] {
    require_single_process("predict");
    predict(*options);
    return 0;
  };
}

}  // namespace shardmat::tools
