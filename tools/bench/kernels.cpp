// Every kernel, in every layout of its format and with every policy, on matrices of every class, against cuSPARSE.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "kernels/base/timer.h"
#include "kernels/choose/tuner.h"
#include "tools/bench/bench.h"
#include "tools/bench/kernel_report.h"
#include "tools/bench/options.h"
#include "tools/bench/outputs.h"
#include "tools/bench/peer_comparison.h"
#include "tools/cli/checks.h"
#include "tools/cli/environment.h"
#include "tools/cli/help_text.h"
#include "tools/cli/progress_bar.h"

namespace shardmat::tools {
namespace {

constexpr const char* kPlotScript = "plot_kernels.py";
constexpr const char* kPeerPlotScript = "plot_peers.py";
constexpr std::string_view kPeer = "sell_cusparse";

struct Options : BenchOptions {
  std::vector<std::string> kernels;  ///< empty: all; with peers: auto
  PeerOptions peers;
  std::string plot;
  double budget = 120;
  bool peer_sweep = false;
};

/// The kernels asked for, the yardsticks among them or added, those first: the budget must not cut them off.
std::vector<const Kernel*> choose_kernels(const std::vector<std::string>& names, Backend backend) {
  std::vector<const Kernel*> chosen;
  for (const std::string& name : names)
    if (name != "all" && name != "auto") find_kernel(name, backend);
  for (const Kernel& kernel : kernels()) {
    if (kernel.backend != backend) continue;
    const bool asked = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return name == "all" || (name == "auto" && kernel.automatic) || name == kernel.name;
    });
    if (asked || is_yardstick(kernel.name, kernel.format, backend)) chosen.push_back(&kernel);
  }
  std::stable_partition(chosen.begin(), chosen.end(),
                        [&](const Kernel* k) { return is_yardstick(k->name, k->format, backend); });
  return chosen;
}

bool names_kernels(const Options& o) {
  return std::none_of(o.kernels.begin(), o.kernels.end(), [](const std::string& k) { return k == "all" || k == "auto"; });
}

Options with_all_kernels(Options options) {
  if (options.kernels.empty()) options.kernels = {"all"};
  return options;
}

class KernelsBench {
 public:
  explicit KernelsBench(const Options& options)
      : options_(with_all_kernels(options)),
        machine_(examine_machine(options.backend)),
        guard_(machine_.device),
        stream_(machine_.device),
        kernels_(choose_kernels(options_.kernels, machine_.device.backend)),
        progress_(make_progress_bar()) {
    if (!options.warm) flush_ = std::make_unique<CacheFlush>(machine_.device);
    report_.machine = machine_;
    report_.repetitions = options.usual_repetitions(machine_.device.backend);
    report_.flushed = !options.warm;
    report_.verified = options.verify;
    if (options.peer_sweep && !is_chosen(kPeer))
      report_.notes.push_back(fmt::format("--peer-sweep has nothing to sweep: there is no kernel {} on the {} backend",
                                          kPeer, name(machine_.device.backend)));
    if (names_kernels(options_)) report_.notes.emplace_back("kernels were named, so the automatic choice is not measured");
  }

  /// Saves what there is after every product.
  const KernelReport& measure_all(bool print, const GrowingReport& file) {
    if (print) fmt::print("{}", header_text(report_));
    const auto matrices = matrices_from(options_.matrices, kernel_classes(), options_.matrix_size(machine_.device.backend));
    for (const NamedMatrix& matrix : matrices) {
      const HostCsr csr = load_matrix(matrix.argument, progress_);
      for (const ValueType type : options_.value_types()) {
        measure(matrix, csr.view(), type, file);
        if (print) fmt::print("{}", case_text(report_.cases.back(), machine_));
        std::fflush(stdout);
      }
    }
    if (print) fmt::print("{}", summary_text(report_));
    return report_;
  }

 private:
  void save(const GrowingReport& file) const {
    file.save([&] { return to_json(report_); });
  }

  bool is_chosen(std::string_view kernel) const {
    return std::any_of(kernels_.begin(), kernels_.end(), [&](const Kernel* k) { return k->name == kernel; });
  }

  void measure(const NamedMatrix& matrix, const CsrView& csr, ValueType type, const GrowingReport& file) {
    Trial trial(csr, type, stream_, {report_.repetitions, flush_.get(), options_.verify});
    KernelCase& one = report_.cases.emplace_back();
    one.name = matrix.name;
    one.argument = matrix.argument;
    one.type = type;
    one.cols = csr.cols;
    one.x_entries = trial.x_entries();
    one.rows = trial.input().rows();
    Timer timer;
    const std::string phase = fmt::format("{} {}", matrix.name, name(type));
    std::vector<std::string_view> done;  // formats
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      const Kernel* kernel = kernels_[i];
      report(progress_, phase, static_cast<std::int64_t>(i), std::ssize(kernels_));
      if (std::find(done.begin(), done.end(), kernel->format) != done.end()) continue;
      done.push_back(kernel->format);
      measure_format(find_format(kernel->format), trial, timer, one, file);
    }
    report(progress_, phase, 1, 1);
    if (names_kernels(options_)) return;
    choose(csr, type, trial, one);
    save(file);
  }

  /// Kernels of one format share its conversions.
  void measure_format(const Format& format, Trial& trial, const Timer& timer, KernelCase& one, const GrowingReport& file) {
    std::vector<const Kernel*> of_format;
    std::copy_if(kernels_.begin(), kernels_.end(), std::back_inserter(of_format),
                 [&](const Kernel* k) { return k->format == format.name; });
    const std::string late = fmt::format("the budget of {} is used up", human_seconds(options_.budget));
    const auto leave_out = [&](const Kernel& kernel, const std::string& policy) {
      KernelResult result;
      result.kernel = kernel.name;
      result.format = format.name;
      result.policy = policy;
      result.refused = late;
      one.results.push_back(std::move(result));
    };
    std::vector<Policy> layouts;
    if (timer.seconds() <= options_.budget) layouts = trial.layouts(format);
    const std::size_t usual = layouts.size();
    if (layouts.empty())
      for (const Kernel* kernel : of_format) leave_out(*kernel, "");
    else add_sweep(of_format, layouts);
    for (std::size_t l = 0; l < layouts.size(); ++l) {
      StoredMatrix stored;  // converted for the first kernel that still has time
      for (const Kernel* kernel : of_format) {
        if (l >= usual && kernel->name != kPeer) continue;
        for (const Policy& policy : kernel->policies(one.rows)) {
          if (timer.seconds() > options_.budget) {
            leave_out(*kernel, tunables_text(layouts[l], policy));
            continue;
          }
          if (!stored.storage && stored.refused.empty()) stored = trial.convert(format, layouts[l]);
          one.results.push_back(trial.measure(*kernel, stored, policy));
          save(file);
        }
      }
    }
  }

  /// The slice heights of cuSPARSE's SELL, rows left in their order, behind the layouts that all kernels of the format try.
  void add_sweep(const std::vector<const Kernel*>& of_format, std::vector<Policy>& layouts) const {
    const bool peer = std::any_of(of_format.begin(), of_format.end(), [](const Kernel* k) { return k->name == kPeer; });
    if (!options_.peer_sweep || !peer) return;
    for (int slice = 2; slice <= 128; slice *= 2) {
      const Policy layout = layouts.front().with(fmt::format("slice={},sigma=1", slice));
      if (std::find(layouts.begin(), layouts.end(), layout) == layouts.end()) layouts.push_back(layout);
    }
  }

  void choose(const CsrView& csr, ValueType type, Trial& trial, KernelCase& one) {
    const ChosenPlan chosen = choose_plan(csr, type, PlanRequest{}, stream_);
    one.chosen = trial.measure(*chosen.plan);
    one.chosen_why = chosen.why;
  }

  Options options_;
  Machine machine_;
  DeviceGuard guard_;
  Stream stream_;
  std::vector<const Kernel*> kernels_;
  Progress progress_;
  std::unique_ptr<CacheFlush> flush_;
  KernelReport report_;
};

/// Our products of a matrix in the kernels that were named, or the automatic choice.
std::vector<OwnProduct> own_products(PeerTrial& trial, const std::vector<std::string>& kernels) {
  std::vector<OwnProduct> products;
  for (const std::string& kernel : kernels) {
    PlanRequest request;
    request.kernel = kernel;
    const std::shared_ptr<const Plan> plan = choose_plan(trial.matrix(), trial.type(), request, trial.stream()).plan;
    products.push_back({kernel, plan->kernel, plan->tunables(),
                        [plan, &trial] { plan->multiply(1, trial.x(), 0, trial.y(), trial.stream()); },
                        plan->storage().bytes});
  }
  return products;
}

int run_with_peers(const Options& o) {
  const Outputs outputs{o.json, o.plot};
  require_outputs(outputs, kPeerPlotScript, o.matrices);
  const std::vector<std::string> kernels = o.kernels.empty() ? std::vector<std::string>{"auto"} : o.kernels;
  for (const std::string& kernel : kernels) {
    if (kernel == "all")
      throw Error(ErrorKind::usage, "peers are compared with named kernels, or auto, not with all of them", "peers");
    if (kernel != "auto") find_kernel(kernel, Backend::host);
  }
  PeerComparison comparison("kernels", o, o.peers);
  const GrowingReport file(outputs, kPeerPlotScript);
  for (const NamedMatrix& matrix : matrices_from(o.matrices, kernel_classes(), o.matrix_size(Backend::host))) {
    const HostCsr csr = load_matrix(matrix.argument, {});
    for (const ValueType type : comparison.types())
      comparison.compare(
          {matrix.name, matrix.argument}, csr.view(), type, {},
          [&](PeerTrial& trial) { return own_products(trial, kernels); }, file);
  }
  return comparison.finish(file);
}

int run(const Options& o) {
  if (o.peers.wanted) return run_with_peers(o);
  const Outputs outputs{o.json, o.plot};
  require_outputs(outputs, kPlotScript, o.matrices);
  KernelsBench run(o);
  const GrowingReport file(outputs, kPlotScript);
  const KernelReport& report = run.measure_all(o.json != "-", file);
  file.finish(to_json(report));
  return exit_code(count_wrong(report));
}

}  // namespace

std::function<int()> add_bench_kernels(const CommandLine& bench) {
  const CommandLine app = bench.add_subcommand("kernels", "Every kernel on matrices of every class, compared with cuSPARSE");
  auto options = std::make_shared<Options>();
  add_bench_options(app, *options);
  add_list(app.in(Topic::computation), "--kernel", options->kernels,
           "kernels to measure, as a list; all (default); or auto: the kernels that the automatic choice tries. All are "
           "compared with the kernels of cuSPARSE, on the host with those of the format csr, which are therefore always "
           "measured. With --peers auto (default) is the kernel that the automatic choice takes" +
               kernel_choices(shardmat::kernels()))
      ->common();
  app.in(Topic::computation)
      .add_option("--budget", options->budget,
                  "for each matrix and type: start no measurement after X seconds, and list the kernels that are left out")
      ->check(positive_number())
      ->capture_default_str();
  app.in(Topic::computation)
      .add_flag("--peer-sweep", options->peer_sweep, "try cuSPARSE's SELL with slices of 2, 4, 8, 16, 32, 64 and 128 rows");
  add_peer_options(app, options->peers, {"--warm", "--budget", "--peer-sweep"});
  app.in(Topic::output)
      .add_option("--plot", options->plot, "draw the speed-ups to FILE (.svg, .png or .pdf; needs python3-matplotlib)")
      ->check(plot_name())
      ->type_name("FILE")
      ->common();
  app.footer(
      "\nExamples:\n  shardmat bench kernels\n  shardmat bench kernels --size tiny --backend host\n"
      "  shardmat bench kernels part.mtx.gz elasticity:n=60 --kernel csr_vector --type f64\n"
      "  shardmat bench kernels --peer-sweep --json kernels.json --plot kernels.svg\n"
      "  shardmat bench kernels elasticity:n=40 --backend host --peers --threads 1,2 --kernel auto,csr_host\n");
  return [options] {
    require_single_process("bench kernels");
    return run(*options);
  };
}

}  // namespace shardmat::tools
