// The service under load: scenarios with targets, each on a server of its own.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tools/bench/bench.h"
#include "tools/bench/machine.h"
#include "tools/bench/options.h"
#include "tools/bench/outputs.h"
#include "tools/bench/service/processes.h"
#include "tools/bench/service/scenario.h"
#include "tools/bench/service/scratch.h"
#include "tools/cli/checks.h"
#include "tools/cli/environment.h"
#include "tools/cli/report_option.h"

namespace shardmat::tools {
namespace {

using service_bench::Outcome;
using service_bench::Scenario;
using service_bench::scenarios;

constexpr const char* kScript = "plot_service.py";

struct Options {
  std::string matrix, size = "full", backend = "host";
  std::vector<std::string> names;
  int ranks = 0;
  double seconds = 0;
  std::uint64_t seed = 1;
  Outputs outputs;
};

/// Prints each outcome when it is there.
class Run {
 public:
  explicit Run(const Options& options)
      : options_(options), machine_(examine_machine(options.backend)), loads_(service_bench::load_averages()) {}

  int run() {
    const GrowingReport file(options_.outputs, kScript);
    const bool prints = options_.outputs.json != "-";
    if (prints) fmt::print("{}Load averages {} before\n\n{}", machine_.text(), loads_, service_bench::figures_heading());
    setenv("OMP_WAIT_POLICY", "passive", 0);  // of all ranks, as the service sets it for its own
    const service_bench::Scratch scratch;
    const bool on_gpus = machine_.device.backend == Backend::cuda;
    service_bench::MatrixFolder library(scratch.path() / "library", on_gpus ? "cuda" : "host");
    const service_bench::Setup setup{options_.size == "small",
                                     options_.ranks,
                                     options_.matrix,
                                     library,
                                     on_gpus ? cuda_device_count() : std::numeric_limits<int>::max(),
                                     options_.seconds,
                                     options_.seed};
    std::fflush(stdout);
    std::int64_t wrong = 0;
    for (const Scenario& scenario : scenarios()) {
      const auto& names = options_.names;
      if (!names.empty() && std::find(names.begin(), names.end(), scenario.name) == names.end()) continue;
      outcomes_.push_back(outcome_of(scenario, setup));
      wrong += outcomes_.back().wrong();
      file.save([&] { return json(); });
      if (prints) fmt::print("{}", outcomes_.back().text());
      std::fflush(stdout);
    }
    file.finish(json());
    return exit_code(wrong);
  }

 private:
  static Outcome outcome_of(const Scenario& scenario, const service_bench::Setup& setup) {
    Outcome outcome{std::string(scenario.name)};
    const double began = service_bench::now(), all = service_bench::machine_busy_seconds(),
                 own = service_bench::own_busy_seconds();
    scenario.run(setup, outcome);
    const double seconds = service_bench::now() - began;
    const double foreign = service_bench::machine_busy_seconds() - all - (service_bench::own_busy_seconds() - own);
    outcome.finish(seconds, std::max(0.0, foreign / seconds));
    return outcome;
  }

  nlohmann::ordered_json json() const {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Outcome& outcome : outcomes_) list.push_back(outcome.json());
    return {{"command", command_line()},
            {"machine", machine_.json()},
            {"size", options_.size},
            {"cores", std::thread::hardware_concurrency()},
            {"virtual_machine", service_bench::is_virtual_machine()},
            {"load_averages", loads_},
            {"scenarios", list}};
  }

  const Options& options_;
  Machine machine_;
  std::string loads_;
  std::vector<Outcome> outcomes_;
};

int run(const Options& options) {
  require_outputs(options.outputs, kScript, {options.matrix});
  return Run(options).run();
}

}  // namespace

std::function<int()> add_bench_service(const CommandLine& bench) {
  const CommandLine app =
      bench.add_subcommand("service", "The service under load: speed, latency, lost ranks, bits, against targets");
  auto o = std::make_shared<Options>();
  std::vector<std::string> names;
  std::string list = "\nScenarios:\n";
  for (const Scenario& scenario : scenarios()) {
    names.emplace_back(scenario.name);
    list += fmt::format("  {:<10} {}\n", scenario.name, scenario.help);
  }
  app.add_option("matrix", o->matrix,
                 "matrix file or generator for merged, stream, solves, latency, overload, kill, stop, drain, idle and chaos "
                 "(default: one that suits each)");
  add_list(app.in(Topic::computation), "--scenario", o->names, "scenarios to run, NAME,… (default: all)")
      .check(one_of(names))
      ->common();
  app.in(Topic::input)
      .add_option("--size", o->size, "small: seconds each, to try whether all works; full: minutes, for figures")
      ->check(one_of({"small", "full"}))
      ->capture_default_str()
      ->common();
  add_backend_option(app, o->backend, "where the ranks multiply; auto takes the GPUs if there is one");
  app.in(Topic::machine)
      .add_option("--ranks", o->ranks,
                  "number of ranks of every server (default: one or two, as suits each; on GPUs no more than there are)")
      ->check(whole_number(1, 1 << 10))
      ->common();
  app.in(Topic::computation)
      .add_option("--seconds", o->seconds, "length of the scenario chaos (default: 60, with --size small 10)")
      ->check(positive_number())
      ->common();
  app.in(Topic::computation).add_option("--seed", o->seed, "seed of the scenario chaos")->capture_default_str();
  add_json_option(app, o->outputs.json, ", anew after every scenario");
  app.in(Topic::output)
      .add_option("--plot", o->outputs.plot,
                  "draw products a second and latency over the number of clients to FILE (.svg, .png or .pdf; needs "
                  "python3-matplotlib and the scenario merged or solves)")
      ->check(plot_name())
      ->type_name("FILE")
      ->common();
  app.footer(list +
             "\nServers run in temporary folders. Targets are printed with a verdict; a missed one does not change the exit "
             "code, a wrong bit does.\n"
             "\nExamples:\n  shardmat bench service --json service.json --plot service.svg\n"
             "  shardmat bench service --scenario merged,latency elasticity:n=40\n"
             "  shardmat bench service --scenario chaos --seconds 1800 --seed 7\n"
             "  shardmat bench service --backend cuda --scenario merged,stream,bits\n");
  return [o] {
    require_single_process("bench service");
    return run(*o);
  };
}

}  // namespace shardmat::tools
