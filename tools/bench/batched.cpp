// Batched products of many small matrices: the figures of Nagasaka, Nukada, Kojima and Matsuoka, "Batched sparse matrix
// multiplication for accelerating graph convolutional networks", 2019, on the GPU of today, with everything that they
// compare measured in one run.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/batched/batched_tuner.h"
#include "tools/bench/batched_figures.h"
#include "tools/bench/batched_report.h"
#include "tools/bench/bench.h"
#include "tools/bench/options.h"
#include "tools/bench/outputs.h"
#include "tools/bench/peer_comparison.h"
#include "tools/cli/checks.h"
#include "tools/cli/environment.h"
#include "tools/cli/help_text.h"
#include "tools/cli/progress_bar.h"

namespace shardmat::tools {
namespace {

constexpr const char* kPlotScript = "plot_batched.py";
constexpr const char* kPeerPlotScript = "plot_peers.py";
constexpr const char* kTensorflow = "coo_tensorflow";  ///< measured beside the peers

struct Options : RunOptions {
  std::vector<std::string> sources, figures, kernels;
  std::vector<std::int64_t> counts;
  PeerOptions peers;
  std::string plot;
  bool cold = false;
};

/// What is multiplied, and with how many columns.
struct Series {
  std::string figure, source;
  std::vector<std::int64_t> counts;
};

std::vector<Series> series_of(const Options& options) {
  std::vector<Series> all;
  const bool every = options.figures.empty() && options.sources.empty();
  for (const BatchFigure& figure : kBatchFigures)
    if (every || std::find(options.figures.begin(), options.figures.end(), figure.name) != options.figures.end())
      all.push_back({std::string(figure.name), std::string(figure.source),
                     !options.counts.empty() ? options.counts
                     : figure.all_between    ? powers_of_two(figure.least, figure.most)
                                             : std::vector{figure.least, figure.most}});
  for (const std::string& source : options.sources)
    all.push_back({source, source, !options.counts.empty() ? options.counts : powers_of_two(8, 512)});
  return all;
}

class BatchedBench {
 public:
  explicit BatchedBench(const Options& options)
      : options_(options),
        machine_(examine_machine(options.backend)),
        guard_(machine_.device),
        stream_(machine_.device),
        progress_(make_progress_bar()) {
    const Backend backend = machine_.device.backend;
    std::vector<std::string> asked = options.kernels;
    if (asked.empty())
      asked =
          backend == Backend::cuda ? std::vector<std::string>{"auto", "swa", "coo_swa"} : std::vector<std::string>{"auto"};
    if (backend == Backend::cuda) asked.emplace_back(kTensorflow);
    for (const std::string& kernel : asked) {
      if (kernel != "auto") find_batched_kernel(kernel, backend);
      if (std::find(kernels_.begin(), kernels_.end(), kernel) == kernels_.end()) kernels_.push_back(kernel);
    }
    if (options.cold) flush_ = std::make_unique<CacheFlush>(machine_.device);
    report_.machine = machine_;
    report_.repetitions = options.usual_repetitions(backend);
    report_.cold = options.cold;
    report_.verified = options.verify;
  }

  /// Saves what there is after every number of columns.
  void measure_all(bool print, const GrowingReport& file) {
    if (print) fmt::print("{}", machine_.text());
    for (const ValueType type : options_.value_types())
      for (const Series& series : series_of(options_)) {
        const std::size_t first = report_.cases.size();
        measure(series, type, file);
        if (print && report_.cases.size() > first)
          fmt::print("{}", figure_text(report_, std::span(report_.cases).subspan(first)));
        std::fflush(stdout);
      }
    if (print) fmt::print("{}", summary_text(report_));
  }

  const BatchedReport& result() const { return report_; }

 private:
  void measure(const Series& series, ValueType type, const GrowingReport& file) {
    const auto source = open_batch(series.source);
    const HostBatch batch = source->read(0, source->count());
    BatchedTrial trial(batch.view(), type, stream_, {report_.repetitions, flush_.get(), options_.verify});
    const bool has_peers = machine_.device.backend == Backend::cuda;
    for (std::size_t i = 0; i < series.counts.size(); ++i) {
      BatchedCase one;
      one.figure = series.figure;
      one.source = series.source;
      one.batch = {source->count(), source->rows(), source->cols(), source->nnz()};
      one.type = type;
      one.rhs = series.counts[i];
      const auto phase = fmt::format("{} {} n_B {}", series.figure, name(type), one.rhs);
      report(progress_, phase, static_cast<std::int64_t>(i), std::ssize(series.counts));
      const auto unless_too_large = [&](const auto& what, const auto& measure) {
        try {
          measure();
          return true;
        } catch (const Error& e) {
          if (e.kind() != ErrorKind::resources) throw;
          report_.notes.push_back(fmt::format("{}: {}: {}", phase, what, e.what()));
          return false;
        }
      };
      if (!unless_too_large("X and Y", [&] { trial.prepare(one.rhs); })) continue;
      one.compulsory_bytes = trial.compulsory_bytes();
      for (const std::string& kernel : kernels_)
        unless_too_large(kernel, [&] { one.results.push_back(trial.measure(kernel)); });
      if (has_peers)
        for (const PeerKind& peer : batched_peers())
          unless_too_large(peer.name, [&] { one.results.push_back(trial.measure(peer)); });
      unless_too_large("the copy", [&] { one.copy = trial.measure_copy(); });
      report_.cases.push_back(std::move(one));
      file.save([&] { return to_json(report_); });
    }
    report(progress_, series.figure, 1, 1);
  }

  Options options_;
  Machine machine_;
  DeviceGuard guard_;
  Stream stream_;
  Progress progress_;
  std::unique_ptr<CacheFlush> flush_;
  std::vector<std::string> kernels_;
  BatchedReport report_;
};

/// All matrices of a batch in one, for libraries that know no batches.
HostCsr block_diagonal(const BatchView& batch) {
  HostCsr matrix;
  matrix.rows = batch.rows(), matrix.cols = batch.cols();
  matrix.row_ptr.resize(static_cast<std::size_t>(batch.rows()) + 1);
  matrix.col_idx.resize(static_cast<std::size_t>(batch.nnz()));
  matrix.values.assign(batch.values.begin(), batch.values.begin() + batch.nnz());
  for (std::size_t i = 0; i < matrix.row_ptr.size(); ++i) matrix.row_ptr[i] = batch.row_ptr[i] - batch.row_ptr[0];
  for (std::int64_t m = 0; m < batch.count(); ++m) {
    const auto at = [&](std::span<const std::int64_t> first, std::int64_t i) {
      return static_cast<std::size_t>(first[static_cast<std::size_t>(i)] - first[0]);
    };
    const std::int64_t shift = static_cast<std::int64_t>(at(batch.first_col, m));
    const auto begin = static_cast<std::size_t>(matrix.row_ptr[at(batch.first_row, m)]),
               end = static_cast<std::size_t>(matrix.row_ptr[at(batch.first_row, m + 1)]);
    for (std::size_t k = begin; k < end; ++k) matrix.col_idx[k] = shift + batch.col_idx[k];
  }
  sort_rows_and_sum_duplicates(matrix);
  return matrix;
}

std::vector<OwnProduct> own_products(PeerTrial& trial, const BatchView& batch, const std::vector<std::string>& kernels) {
  const std::shared_ptr<const DeviceBatch> csr = upload(batch, trial.type(), trial.stream());
  std::vector<OwnProduct> products;
  for (const std::string& kernel : kernels) {
    BatchedRequest request;
    request.kernel = kernel;
    const std::shared_ptr<const BatchedPlan> plan =
        choose_batched_plan(csr, trial.rhs().count, request, trial.stream()).plan;
    products.push_back({kernel, plan->kernel, plan->policy.text(), [plan, &trial] {
                          plan->multiply(trial.x(), trial.leading_x(), trial.y(), trial.leading_y(), {}, trial.stream());
                        }});
  }
  return products;
}

int run_with_peers(const Options& o) {
  const Outputs outputs{o.json, o.plot};
  require_outputs(outputs, kPeerPlotScript, o.sources);
  const std::vector<std::string> kernels = o.kernels.empty() ? std::vector<std::string>{"auto"} : o.kernels;
  for (const std::string& kernel : kernels)
    if (kernel != "auto" && find_batched_kernel(kernel, Backend::host).format != BatchFormat::csr)
      throw Error(ErrorKind::usage, fmt::format("the peers take batches in compressed rows, not {}", kernel), "peers");
  PeerComparison comparison("batched", o, o.peers);
  const GrowingReport file(outputs, kPeerPlotScript);
  for (const Series& series : series_of(o)) {
    const auto source = open_batch(series.source);
    const HostBatch batch = source->read(0, source->count());
    const HostCsr diagonal = block_diagonal(batch.view());
    for (const ValueType type : comparison.types())
      for (const std::int64_t count : series.counts)
        comparison.compare(
            {series.figure, series.source}, diagonal.view(), type, {count},
            [&](PeerTrial& trial) { return own_products(trial, batch.view(), kernels); }, file);
  }
  return comparison.finish(file);
}

int run(const Options& o) {
  if (o.peers.wanted) return run_with_peers(o);
  const Outputs outputs{o.json, o.plot};
  require_outputs(outputs, kPlotScript, o.sources);
  BatchedBench run(o);
  const GrowingReport file(outputs, kPlotScript);
  run.measure_all(o.json != "-", file);
  file.finish(to_json(run.result()));
  return exit_code(count_wrong(run.result()));
}

std::vector<std::string> figure_names() {
  std::vector<std::string> names;
  for (const BatchFigure& figure : kBatchFigures) names.emplace_back(figure.name);
  return names;
}

}  // namespace

std::function<int()> add_bench_batched(const CommandLine& bench) {
  const CommandLine app = bench.add_subcommand(
      "batched",
      "Batches of small matrices, compared with cuSPARSE (one by one, and in one call), cuBLAS and TensorFlow's kernel");
  auto options = std::make_shared<Options>();
  options->types = {"f32"};
  app.add_option("source", options->sources,
                 "batches: files, folders and generators such as batch:count=100,dim=64,row_nnz=3,seed=1 (default: those of "
                 "--figure)");
  add_list(app.in(Topic::input), "--figure", options->figures,
           "figures of the paper of Nagasaka et al. to measure again, e.g. 6a,8; large is not in the paper: many molecules "
           "(default: all, if no batch is named)")
      ->check(one_of(figure_names()))
      ->common();
  app.in(Topic::input)
      .add_option(
          "--rhs", options->counts,
          "numbers of columns (n_B in the paper), as a list, e.g. 16,64 (default: those of the figure, else 8 to 512)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(whole_number(1, 1 << 20))
      ->common();
  add_list(app.in(Topic::computation), "--kernel", options->kernels,
           "our kernels to measure, as a list (default auto,swa,coo_swa; on the host auto). Kernels of other libraries are "
           "always measured" +
               kernel_choices(batched_kernels()))
      ->common();
  app.in(Topic::computation).add_flag("--cold", options->cold, "also measure with flushed caches");
  add_peer_options(app, options->peers, {"--cold"});
  add_run_options(app, *options);
  app.in(Topic::output)
      .add_option("--plot", options->plot, "draw the speeds to FILE (.svg, .png or .pdf; needs python3-matplotlib)")
      ->check(plot_name())
      ->type_name("FILE")
      ->common();
  app.footer(
      "\nExamples:\n  shardmat bench batched --json batched.json --plot batched.svg\n"
      "  shardmat bench batched --figure 6b,8 --type f32,f64 --cold\n"
      "  shardmat bench batched batch:count=1000,dim=20-40,row_nnz=2-4,seed=7 --rhs 16,64\n"
      "  shardmat bench batched molecules:count=4096,seed=1 --backend host --peers --rhs 64\n");
  return [options] {
    require_single_process("bench batched");
    return run(*options);
  };
}

}  // namespace shardmat::tools
