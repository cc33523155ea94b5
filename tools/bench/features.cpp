// Graph convolutions of batches, Y = A X W: in one launch, and as a dense product of cuBLAS before or behind a batched one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/batched/batched_tuner.h"
#include "kernels/batched/features.h"
#include "kernels/measure.h"
#include "partition/batched/batch_source.h"
#include "tools/bench/bench.h"
#include "tools/bench/dense_gemm.h"
#include "tools/bench/machine.h"
#include "tools/bench/options.h"
#include "tools/bench/outputs.h"
#include "tools/bench/repeated_table.h"
#include "tools/bench/result_table.h"
#include "tools/cli/checks.h"
#include "tools/cli/environment.h"
#include "tools/cli/progress_bar.h"

namespace shardmat::tools {
namespace {

constexpr int kTogether = 20;  ///< products in a graph
constexpr std::int64_t kMostChecked = 1 << 20;

struct Options : RunOptions {
  std::vector<std::string> sources;
  std::vector<std::int64_t> in, out;
};

/// Products of one batch with so many features.
class FeatureTrial {
 public:
  FeatureTrial(const BatchView& batch, std::int64_t in, std::int64_t out, const Options& options, Stream& stream)
      : batch_(batch),
        in_(in),
        out_(out),
        repetitions_(options.usual_repetitions(stream.device().backend)),
        verify_(options.verify),
        stream_(stream),
        table_(ValueType::f32),
        stored_(upload(batch, ValueType::f32, stream)) {
    const std::int64_t between = std::max(batch.rows() * in, batch.cols() * out);
    require_memory(stream.device(), 4 * (batch.cols() * in + in * out + batch.rows() * out + between), "X, W and Y");
    x_ = memory(batch.cols() * in), w_ = memory(in * out), y_ = memory(batch.rows() * out), between_ = memory(between);
    table_.fill(x_, stream);
    table_.fill(w_, stream);
    if (stream.device().backend == Backend::cuda)
      for (const std::int64_t columns : {out, in}) plans_.push_back(choose_batched_plan(stored_, columns, {}, stream).plan);
  }

  struct Result {
    double seconds = 0, error = 0;  ///< error: most, in units of f32's roundoff of the sum of the terms' magnitudes
    bool wrong = false;             ///< that is more than f32 may have
  };

  Result fused() {
    const auto plan = make_feature_plan(stored_, in_, out_);
    plan->place(stream_);
    return measure([&] { plan->multiply(x_.data(), in_, w_.data(), out_, y_.data(), out_, {}, stream_); });
  }

  /// The faster of A·(X·W) and (A·X)·W; none without cuBLAS.
  std::optional<Result> in_two(bool tf32) {
    std::optional<Result> best;
    for (const bool weights_first : {true, false}) {
      const auto gemm = make_dense_gemm(weights_first ? batch_.cols() : batch_.rows(), in_, out_, tf32, stream_.device());
      if (!gemm) return std::nullopt;
      const BatchedPlan& plan = *plans_[weights_first ? 0 : 1];
      const Result result = measure([&] {
        if (weights_first) {
          gemm->multiply(x_.data(), w_.data(), between_.data(), stream_);
          plan.multiply(between_.data(), out_, y_.data(), out_, {}, stream_);
        } else {
          plan.multiply(x_.data(), in_, between_.data(), in_, {}, stream_);
          gemm->multiply(between_.data(), w_.data(), y_.data(), stream_);
        }
      });
      const bool wrong = result.wrong || (best && best->wrong);
      if (!best || result.seconds < best->seconds) best = result;
      best->wrong = wrong;
    }
    return best;
  }

  /// That must be moved at least.
  std::int64_t compulsory_bytes() const {
    return stored_->bytes() + 4 * (batch_.cols() * in_ + in_ * out_ + batch_.rows() * out_);
  }

 private:
  Buffer memory(std::int64_t entries) const { return {stream_.device(), static_cast<std::size_t>(entries) * sizeof(float)}; }

  Result measure(const std::function<void()>& product) {
    for (Buffer* made : {&between_, &y_}) fill_bytes(made->data(), 0xff, made->bytes(), stream_);  // NaN
    product();
    Result result;
    if (verify_) result.error = worst_error();
    result.wrong = !(result.error <= 2 * static_cast<double>(longest_row() + in_ + 8));
    TimingOptions timing;
    timing.repetitions = repetitions_;
    timing.warm_up_seconds = kUsualWarmUp;
    timing.most_seconds = 1;
    Graph graph(stream_, [&] {
      for (int i = 0; i < kTogether; ++i) product();
    });
    result.seconds = time_work([&] { graph.launch(stream_); }, stream_, timing).median / kTogether;
    return result;
  }

  std::int64_t longest_row() const {
    std::int64_t most = 0;
    for (std::size_t row = 0; row + 1 < batch_.row_ptr.size(); ++row)
      most = std::max(most, batch_.row_ptr[row + 1] - batch_.row_ptr[row]);
    return most;
  }

  double worst_error() {
    std::vector<float> y(y_.bytes() / sizeof(float));
    copy_to_host(y.data(), y_.data(), y_.bytes(), stream_);
    const std::int64_t step = std::max<std::int64_t>(1, std::ssize(y) / kMostChecked) | 1;
    std::vector<double> worst(static_cast<std::size_t>(batch_.count()), 0);
    parallel_ranges(batch_.count(), 1, [&](std::int64_t first, std::int64_t last) {
      for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i)
        for (std::int64_t row = batch_.first_row[i]; row < batch_.first_row[i + 1]; ++row)
          if ((row - batch_.first_row[0]) % step == 0) worst[i] = std::max(worst[i], error_of_row(i, row, y));
    });
    return worst.empty() ? 0 : *std::max_element(worst.begin(), worst.end());
  }

  double error_of_row(std::size_t matrix, std::int64_t row, const std::vector<float>& y) const {
    std::vector<double> features(static_cast<std::size_t>(in_), 0), magnitude(features);
    const std::int64_t place = row - batch_.first_row[0];
    const auto pointer = [&](std::int64_t r) { return batch_.row_ptr[static_cast<std::size_t>(r)] - batch_.row_ptr[0]; };
    for (std::int64_t k = pointer(place); k < pointer(place + 1); ++k) {
      const std::int64_t from = batch_.first_col[matrix] - batch_.first_col[0] + batch_.col_idx[static_cast<std::size_t>(k)];
      const double value = rounded(ValueType::f32, batch_.values[static_cast<std::size_t>(k)]);
      for (std::size_t f = 0; f < features.size(); ++f) {
        const double term = value * table_.at(from * in_ + static_cast<std::int64_t>(f));
        features[f] += term, magnitude[f] += std::abs(term);
      }
    }
    double worst = 0;
    for (std::int64_t j = 0; j < out_; ++j) {
      double sum = 0, absolute = 0;
      for (std::int64_t f = 0; f < in_; ++f) {
        const double weight = table_.at(f * out_ + j);
        sum += features[static_cast<std::size_t>(f)] * weight;
        absolute += magnitude[static_cast<std::size_t>(f)] * std::abs(weight);
      }
      const double found = static_cast<double>(y[static_cast<std::size_t>(place * out_ + j)]);
      const double error = absolute == 0 ? std::abs(found) : std::abs(found - sum) / absolute;
      worst = std::max(worst, std::isnan(error) ? INFINITY : error / unit_roundoff(ValueType::f32));
    }
    return worst;
  }

  const BatchView& batch_;
  std::int64_t in_, out_;
  int repetitions_;
  bool verify_;
  Stream& stream_;
  RepeatedTable table_;
  std::shared_ptr<const DeviceBatch> stored_;
  std::vector<std::unique_ptr<BatchedPlan>> plans_;  ///< of as many columns as W has, and X
  Buffer x_, w_, y_, between_;
};

ResultTable empty_table() {
  ResultTable table;
  table.title =
      "µs of Y = A X W in f32, warm caches, and in brackets the largest error in roundoffs of the sum of magnitudes";
  table.notes = {"in two: the faster of A (X W) and (A X) W, the dense product by cuBLAS, the other by our fastest kernel"};
  table.columns = {{"batch", "batch"},
                   {"in", "in"},
                   {"out", "out"},
                   {"us", "in one"},
                   {"error", "(error)"},
                   {"of_copy_rate", "of copy rate"},
                   {"two_us", "in two"},
                   {"two_error", "(error)"},
                   {"speed_up", "×"},
                   {"tf32_us", "in two, TF32"},
                   {"tf32_error", "(error)"},
                   {"tf32_speed_up", "×"}};
  return table;
}

class FeaturesBench {
 public:
  explicit FeaturesBench(const Options& options)
      : options_(options),
        machine_(examine_machine(options.backend)),
        guard_(machine_.device),
        stream_(machine_.device),
        progress_(make_progress_bar()),
        table_(empty_table()) {}

  /// Saves what there is after every row.
  void measure_all(const GrowingReport& file) {
    std::vector<std::string> sources = options_.sources;
    if (sources.empty()) sources = {"molecules:count=16384,seed=1", "batch:count=100,dim=64,row_nnz=3,seed=1"};
    for (const std::string& name : sources) {
      const auto source = open_batch(name);
      const HostBatch batch = source->read(0, source->count());
      const BatchView view = batch.view();
      for (std::size_t i = 0; i < options_.in.size(); ++i) {
        report(progress_, name, static_cast<std::int64_t>(i), std::ssize(options_.in));
        measure(name, view, options_.in[i], options_.out.empty() ? options_.in[i] : options_.out[i]);
        file.save([&] { return json(); });
      }
      report(progress_, name, 1, 1);
    }
  }

  std::string text() const { return machine_.text() + table_.text(); }
  nlohmann::ordered_json json() const {
    return {{"command", command_line()},
            {"machine", machine_.json()},
            {"verified", options_.verify},
            {"results", table_.json()}};
  }
  std::int64_t wrong() const { return wrong_; }

 private:
  void measure(const std::string& name, const BatchView& batch, std::int64_t in, std::int64_t out) {
    FeatureTrial trial(batch, in, out, options_, stream_);
    const FeatureTrial::Result ours = trial.fused();
    wrong_ += ours.wrong ? 1 : 0;
    std::vector<Cell> row{
        Cell::word(name),
        Cell::count(in),
        Cell::count(out),
        Cell::figure(1e6 * ours.seconds, 1),
        error_of(ours),
        Cell::share_of_copy(static_cast<double>(trial.compulsory_bytes()) / ours.seconds / machine_.copy_bandwidth)};
    for (const bool tf32 : {false, true}) {
      const auto two = machine_.device.backend == Backend::cuda ? trial.in_two(tf32) : std::nullopt;
      if (two && two->wrong && !tf32) ++wrong_;
      row.push_back(two ? Cell::figure(1e6 * two->seconds, 1) : Cell::none());
      row.push_back(two ? error_of(*two) : Cell::none());
      row.push_back(two ? Cell::figure(two->seconds / ours.seconds, 2) : Cell::none());
    }
    table_.rows.push_back(std::move(row));
  }

  Cell error_of(const FeatureTrial::Result& result) const {
    return options_.verify ? Cell::figure(result.error, 1) : Cell::none();
  }

  Options options_;
  Machine machine_;
  DeviceGuard guard_;
  Stream stream_;
  Progress progress_;
  ResultTable table_;
  std::int64_t wrong_ = 0;
};

int run(const Options& o) {
  if (!o.out.empty() && o.out.size() != o.in.size())
    throw Error(
        ErrorKind::usage,
        fmt::format(
            "{} numbers of input features are given, but {} of output features; give one of each, or leave the output out",
            o.in.size(), o.out.size()),
        "out");
  const Outputs outputs{o.json, ""};
  require_outputs(outputs, "", o.sources);
  const GrowingReport file(outputs, "");
  FeaturesBench run(o);
  run.measure_all(file);
  if (o.json != "-") fmt::print("{}", run.text());
  file.finish(run.json());
  return exit_code(run.wrong());
}

}  // namespace

std::function<int()> add_bench_features(const CommandLine& bench) {
  const CommandLine app = bench.add_subcommand(
      "features", "Graph convolutions of batches, Y = A X W: in one launch, and as two products of which cuBLAS does one");
  auto options = std::make_shared<Options>();
  options->types = {"f32"};
  options->in = {32, 64, 128};
  app.add_option("source", options->sources,
                 "batches: files, folders and generators such as molecules:count=16384,seed=1 (default: this one, and a "
                 "batch of 100 matrices with 64 rows)");
  const auto add_features = [&](const char* name, std::vector<std::int64_t>& list, const char* help) {
    app.in(Topic::input)
        .add_option(name, list, help)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(whole_number(1, FeaturePlan::most_features))
        ->common();
  };
  add_features("--in", options->in, "numbers of features of X, as a list, e.g. 32,64 (default 32,64,128)");
  add_features("--out", options->out,
               "numbers of features of Y, one for each number of --in (default: the numbers of --in)");
  add_run_options(app, *options, {"f32"});
  app.footer(
      "\nExamples:\n  shardmat bench features --json features.json\n"
      "  shardmat bench features MUTAG --in 7,64 --out 64,64\n");
  return [options] {
    require_single_process("bench features");
    return run(*options);
  };
}

}  // namespace shardmat::tools
