// Products with many right-hand sides against cuSPARSE's, against as many products with one, and against the bytes that must
// be moved.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "kernels/choose/tuner.h"
#include "tools/bench/bench.h"
#include "tools/bench/kernel_report.h"
#include "tools/bench/options.h"
#include "tools/bench/outputs.h"
#include "tools/bench/peer_comparison.h"
#include "tools/bench/result_table.h"
#include "tools/bench/spmm_trial.h"
#include "tools/cli/checks.h"
#include "tools/cli/environment.h"
#include "tools/cli/help_text.h"
#include "tools/cli/progress_bar.h"

namespace shardmat::tools {
namespace {

constexpr const char* kPlotScript = "plot_spmm.py";
constexpr const char* kPeerPlotScript = "plot_peers.py";

constexpr MatrixClass kClasses[] = {
    {"poisson27", {"poisson27:n=12", "poisson27:n=40", "poisson27:n=128"}},
    {"elasticity", {"elasticity:n=8", "elasticity:n=24", "elasticity:n=64"}},
    {"rmat", {"rmat:scale=11", "rmat:scale=16", "rmat:scale=20"}},
    {"random", {"random:n=2000,row_nnz=16", "random:n=100000,row_nnz=16", "random:n=1048576,row_nnz=16"}},
};

struct Options : BenchOptions {
  std::vector<std::string> kernels{"auto"};
  std::vector<std::int64_t> counts{2, 4, 8, 16, 32, 64, 128, 256};
  std::vector<std::string> orders{"row"};
  PeerOptions peers;
  std::string plot;
};

/// One matrix in one type and order with one number of right-hand sides.
struct Case {
  NamedMatrix matrix;
  std::int64_t rows = 0, cols = 0, nnz = 0;
  ValueType type = ValueType::f64;
  RightHandSides rhs;
  std::vector<SpmmResult> results;
  std::optional<SpmmResult> chosen;  ///< what the automatic choice takes when it measures
  double spmv_seconds = 0;           ///< of one product with one right-hand side
  double least_seconds = 0;          ///< the bytes that must be moved at the measured copy rate

  const SpmmResult* fastest(bool vendor) const {
    const SpmmResult* best = nullptr;
    for (const SpmmResult& r : results)
      if (is_vendor_kernel(r.kernel) == vendor && r.wrong == 0 && (best == nullptr || r.timing.median < best->timing.median))
        best = &r;
    return best;
  }
  const SpmmResult* ours() const { return chosen ? &*chosen : fastest(false); }
};

std::string_view order_name(DenseOrder order) { return order == DenseOrder::row_major ? "row" : "column"; }

class SpmmBench {
 public:
  explicit SpmmBench(const Options& options)
      : options_(options),
        machine_(examine_machine(options.backend)),
        guard_(machine_.device),
        stream_(machine_.device),
        progress_(make_progress_bar()) {
    for (const std::string& name : options.kernels)
      if (name != "all" && name != "auto") find_spmm_kernel(name, machine_.device.backend);
    if (!options.warm) flush_ = std::make_unique<CacheFlush>(machine_.device);
  }

  /// Saves what there is after every number of right-hand sides.
  void measure_all(bool print, const GrowingReport& file) {
    if (print) fmt::print("{}", machine_.text());
    const auto matrices = matrices_from(options_.matrices, kClasses, options_.matrix_size(machine_.device.backend));
    for (const NamedMatrix& matrix : matrices) {
      const HostCsr csr = load_matrix(matrix.argument, progress_);
      const CsrView view = csr.view();
      for (const ValueType type : options_.value_types()) {
        const TrialOptions trial_options{options_.usual_repetitions(machine_.device.backend), flush_.get(), options_.verify};
        const double spmv = spmv_seconds(view, type, trial_options);
        SpmmTrial trial(view, type, stream_, trial_options);
        for (const std::string& order : options_.orders) {
          const std::size_t first = cases_.size();
          measure(matrix, trial, spmv, order == "row" ? DenseOrder::row_major : DenseOrder::column_major, file);
          if (print && cases_.size() > first) fmt::print("\n{}", table(first).text());
          std::fflush(stdout);
        }
      }
    }
    if (print) fmt::print("{}", summary());
  }

  nlohmann::ordered_json json() const {
    nlohmann::ordered_json report;
    report["machine"] = machine_.json();
    report["repetitions"] = options_.usual_repetitions(machine_.device.backend);
    report["caches"] = options_.warm ? "warm" : "flushed";
    report["verified"] = options_.verify;
    report["not_measured"] = notes_;
    report["cases"] = nlohmann::ordered_json::array();
    const auto of = [](const SpmmResult& r) {
      return nlohmann::ordered_json{{"kernel", r.kernel},
                                    {"policy", r.policy},
                                    {"median_s", r.timing.median},
                                    {"min_s", r.timing.min},
                                    {"max_s", r.timing.max},
                                    {"repetitions", r.timing.repetitions},
                                    {"format_bytes", r.format_bytes},
                                    {"wrong_entries", r.wrong}};
    };
    for (const Case& c : cases_) {
      nlohmann::ordered_json one;
      one["matrix"] = {
          {"name", c.matrix.name}, {"argument", c.matrix.argument}, {"rows", c.rows}, {"cols", c.cols}, {"nnz", c.nnz}};
      one["type"] = std::string(name(c.type));
      one["order"] = std::string(order_name(c.rhs.x));
      one["rhs"] = c.rhs.count;
      one["least_s"] = c.least_seconds;
      one["spmv_s"] = c.spmv_seconds;
      one["results"] = nlohmann::ordered_json::array();
      for (const SpmmResult& r : c.results) one["results"].push_back(of(r));
      one["auto"] = c.chosen ? of(*c.chosen) : nlohmann::ordered_json();
      const SpmmResult *ours = c.ours(), *peer = c.fastest(true);
      one["speed_up"] = ours != nullptr && peer != nullptr
                            ? nlohmann::ordered_json(peer->timing.median / ours->timing.median)
                            : nlohmann::ordered_json();
      report["cases"].push_back(std::move(one));
    }
    return report;
  }

  std::int64_t wrong() const {
    std::int64_t sum = 0;
    for (const Case& c : cases_) {
      for (const SpmmResult& r : c.results) sum += r.wrong > 0;
      sum += c.chosen && c.chosen->wrong > 0;
    }
    return sum;
  }

 private:
  bool wanted(const SpmmKernel& kernel) const {
    return kernel.backend == machine_.device.backend &&
           (is_vendor_kernel(kernel.name) ||
            std::any_of(options_.kernels.begin(), options_.kernels.end(),
                        [&](const std::string& name) { return name == "all" || name == kernel.name; }));
  }

  void measure(const NamedMatrix& matrix, SpmmTrial& trial, double spmv, DenseOrder order, const GrowingReport& file) {
    const CsrView& csr = trial.matrix();
    const bool chooses =
        std::any_of(options_.kernels.begin(), options_.kernels.end(), [](const std::string& k) { return k == "auto"; });
    for (std::size_t i = 0; i < options_.counts.size(); ++i) {
      report(progress_, fmt::format("{} {} {}", matrix.name, name(trial.type()), order_name(order)),
             static_cast<std::int64_t>(i), std::ssize(options_.counts));
      Case one;
      one.matrix = matrix;
      one.rows = csr.rows, one.cols = csr.cols, one.nnz = csr.nnz();
      one.type = trial.type();
      one.rhs = {options_.counts[i], order, order};
      one.spmv_seconds = spmv;
      try {
        trial.prepare(one.rhs);
      } catch (const Error& e) {
        leave_out(one, e);
        continue;
      }
      one.least_seconds = trial.least_bytes() / machine_.copy_bandwidth;
      for (const SpmmKernel& kernel : spmm_kernels())
        if (wanted(kernel))
          for (const Policy& policy : trial.tuner().policies(kernel, one.rhs)) try {
              one.results.push_back(trial.measure(*trial.tuner().make(kernel, one.rhs, policy)));
            } catch (const Error& e) {
              leave_out(one, e);
            }
      if (chooses) try {
          SpmmRequest request;
          request.flush = flush_.get();
          one.chosen = trial.measure(*trial.tuner().choose(one.rhs, request).plan);
        } catch (const Error& e) {
          leave_out(one, e);
        }
      cases_.push_back(std::move(one));
      file.save([&] { return json(); });
    }
    report(progress_, matrix.name, 1, 1);
  }

  /// Notes what does not fit the memory; throws other errors on. Called while `error` is handled.
  void leave_out(const Case& one, const Error& error) {
    if (error.kind() != ErrorKind::resources) throw;
    notes_.push_back(fmt::format("{} {} with {} columns: {}", one.matrix.name, name(one.type), one.rhs.count, error.what()));
  }

  double spmv_seconds(const CsrView& csr, ValueType operands, const TrialOptions& options) {
    const ValueType type = sum_type(operands);  // there are no products with one right-hand side in f16 and bf16
    Trial trial(csr, type, stream_, options);
    const ChosenPlan chosen = choose_plan(csr, type, PlanRequest{}, stream_);
    return trial.measure(*chosen.plan).timing.median;
  }

  ResultTable table(std::size_t first) const {
    const Case& any = cases_[first];
    ResultTable t;
    t.title = fmt::format("{}: {} rows, {} nonzeros, {}, X and Y {}-major", any.matrix.name, human_count(any.rows),
                          human_count(any.nnz), name(any.type), order_name(any.rhs.x));
    t.columns = {{"rhs", "columns"},       {"peer_us", "cuSPARSE µs"}, {"us", "µs"},         {"kernel", "kernel"},
                 {"speed_up", "speed-up"}, {"of_spmv", "of SpMVs"},    {"limit", "× limit"}, {"gflops", "GFLOP/s"}};
    for (std::size_t i = first; i < cases_.size(); ++i) {
      const Case& c = cases_[i];
      const SpmmResult *ours = c.ours(), *peer = c.fastest(true);
      if (ours == nullptr) continue;
      const double seconds = ours->timing.median, count = static_cast<double>(c.rhs.count);
      t.rows.push_back({Cell::count(c.rhs.count),
                        peer != nullptr ? Cell::figure(1e6 * peer->timing.median, 1) : Cell::none(),
                        Cell::figure(1e6 * seconds, 1), Cell::word(ours->kernel),
                        peer != nullptr ? Cell::figure(peer->timing.median / seconds, 2) : Cell::none(),
                        Cell::figure(count * c.spmv_seconds / seconds, 2), Cell::figure(seconds / c.least_seconds, 2),
                        Cell::figure(2e-9 * static_cast<double>(c.nnz) * count / seconds, 0)});
    }
    return t;
  }

  std::string summary() const {
    double logs = 0, least = std::numeric_limits<double>::infinity();
    int count = 0;
    for (const Case& c : cases_) {
      const SpmmResult *ours = c.ours(), *peer = c.fastest(true);
      if (ours == nullptr || peer == nullptr) continue;
      const double ratio = peer->timing.median / ours->timing.median;
      logs += std::log(ratio), least = std::min(least, ratio), ++count;
    }
    std::string text = fmt::format(
        "\nspeed-up: time of cuSPARSE's fastest algorithm over ours; of SpMVs: as many products with one right-hand side "
        "over ours;\n× limit: ours over the bytes of CSR, X and Y at the copy rate of this run\n");
    if (std::any_of(cases_.begin(), cases_.end(), [](const Case& c) { return is_half(c.type); }))
      text += "of SpMVs, f16 and bf16: those are products in f32, as there are none with one right-hand side in 16 bits\n";
    for (const std::string& note : notes_) text += "not measured: " + note + "\n";
    if (count > 0)
      text += fmt::format("Geometric mean of {} speed-ups {:.2f}, lowest {:.2f}\n", count, std::exp(logs / count), least);
    return text;
  }

  Options options_;
  Machine machine_;
  DeviceGuard guard_;
  Stream stream_;
  Progress progress_;
  std::unique_ptr<CacheFlush> flush_;
  std::vector<Case> cases_;
  std::vector<std::string> notes_;  ///< what was not measured
};

std::vector<OwnProduct> own_products(PeerTrial& trial, const std::vector<std::string>& kernels) {
  // The plans keep what they need of input and tuner; the products keep the plans.
  ConversionInput input(trial.matrix(), trial.type(), trial.stream());
  SpmmTuner tuner(input);
  std::vector<OwnProduct> products;
  for (const std::string& kernel : kernels) {
    SpmmRequest request;
    request.kernel = kernel;
    const std::shared_ptr<const SpmmPlan> plan = tuner.choose(trial.rhs(), request).plan;
    products.push_back({kernel, plan->kernel, plan->tunables(), [plan, &trial] {
                          plan->multiply(1, trial.x(), trial.leading_x(), 0, trial.y(), trial.leading_y(), trial.stream());
                        }});
  }
  return products;
}

int run_with_peers(const Options& o) {
  const Outputs outputs{o.json, o.plot};
  require_outputs(outputs, kPeerPlotScript, o.matrices);
  for (const std::string& kernel : o.kernels) {
    if (kernel == "all")
      throw Error(ErrorKind::usage, "peers are compared with named kernels, or auto, not with all of them", "peers");
    if (kernel != "auto") find_spmm_kernel(kernel, Backend::host);
  }
  PeerComparison comparison("spmm", o, o.peers);
  const GrowingReport file(outputs, kPeerPlotScript);
  for (const NamedMatrix& matrix : matrices_from(o.matrices, kClasses, o.matrix_size(Backend::host))) {
    const HostCsr csr = load_matrix(matrix.argument, {});
    for (const ValueType type : comparison.types())
      for (const std::string& word : o.orders)
        for (const std::int64_t count : o.counts) {
          const DenseOrder order = word == "row" ? DenseOrder::row_major : DenseOrder::column_major;
          comparison.compare(
              {matrix.name, matrix.argument}, csr.view(), type, {count, order, order},
              [&](PeerTrial& trial) { return own_products(trial, o.kernels); }, file);
        }
  }
  return comparison.finish(file);
}

int run(const Options& o) {
  if (o.peers.wanted) return run_with_peers(o);
  const Outputs outputs{o.json, o.plot};
  require_outputs(outputs, kPlotScript, o.matrices);
  SpmmBench run(o);
  const GrowingReport file(outputs, kPlotScript);
  run.measure_all(o.json != "-", file);
  file.finish(run.json());
  return exit_code(run.wrong());
}

}  // namespace

std::function<int()> add_bench_spmm(const CommandLine& bench) {
  const CommandLine app = bench.add_subcommand(
      "spmm", "Products with many right-hand sides, compared with cuSPARSE and with one product for each");
  auto options = std::make_shared<Options>();
  add_bench_options(app, *options, {"f32", "f64", "f16", "bf16"});
  app.in(Topic::input)
      .add_option("--rhs", options->counts, "numbers of right-hand sides, as a list, e.g. 8,32")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str()
      ->common();
  add_list(app.in(Topic::input), "--order", options->orders,
           "whether X and Y are stored by rows or by columns; both: row,column")
      ->check(one_of({"row", "column"}));
  add_list(app.in(Topic::computation), "--kernel", options->kernels,
           "kernels to measure, as a list; all; or auto: the automatic choice. Those of cuSPARSE are always measured" +
               kernel_choices(spmm_kernels()))
      ->common();
  add_peer_options(app, options->peers, {"--warm"});
  app.in(Topic::output)
      .add_option("--plot", options->plot, "draw the speed-ups to FILE (.svg, .png or .pdf; needs python3-matplotlib)")
      ->check(plot_name())
      ->type_name("FILE")
      ->common();
  app.footer(
      "\nExamples:\n  shardmat bench spmm\n  shardmat bench spmm --size tiny --backend host --rhs 4,16\n"
      "  shardmat bench spmm part.mtx.gz --rhs 8,32 --order row,column --kernel all --json spmm.json\n"
      "  shardmat bench spmm elasticity:n=40 --backend host --peers --rhs 8,32 --type f64\n");
  return [options] {
    require_single_process("bench spmm");
    return run(*options);
  };
}

}  // namespace shardmat::tools
