#include "runtime/multiply_many.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <vector>

#include "kernels/bandwidth.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/base/timer.h"
#include "kernels/spmm_tuner.h"
#include "partition/vector_file.h"

namespace shardmat {
namespace {

class Run {
 public:
  Run(Communicator& communicator, const MultiplyOptions& options, std::int64_t count)
      : communicator_(communicator), options_(options), count_(count), context_(communicator, options.backend) {}

  MultiplyReport operator()() {
    check_options();
    source_ = open_matrix(options_.matrix, communicator_, options_.access);
    const std::int64_t rows = source_.rows->rows(), cols = source_.rows->cols();
    if (source_.rows->permuted()) original_ = source_.rows->permutation(0, rows);
    const auto x_source = open_vector(options_.x, "x", cols, options_.seed, count_);
    if (options_.beta != 0) y0_source_ = open_vector(options_.y0, "y", rows, options_.seed + 1, count_);
    phase("load rows", [&] {
      matrix_ = source_.rows->read_rows(0, rows);
      require_in_range(options_.load.type, matrix_.values, "the values of " + source_.rows->name());
    });
    Stream& stream = context_.stream();
    phase("convert, tune", [&] { choose(); });
    phase("vectors", [&] {
      x_values_ = entries(*x_source, cols, rows == cols);  // of a square matrix columns are permuted as rows are
      require_in_range(options_.load.type, x_values_, x_source->name());
      x_ = dense(x_values_, options_.load.type, "X");
      if (y0_source_) y0_values_ = entries(*y0_source_, rows, true);
      set_y();
    });
    phase("first product", [&] {
      product();
      result_ = to_host(y_.data(), rows * count_, sum_type(options_.load.type), stream);
    });
    if (options_.verify) phase("verify", [&] { report_.verification = check(); });
    report_.x = x_source->name();
    report_.y0 = y0_source_ ? y0_source_->name() : "";
    if (!report_.verification || report_.verification->passed) {
      if (options_.iterations > 0) phase("iterate", [&] { iterate(); });
      if (!options_.output.empty()) phase("write", [&] { write(); });
    }
    describe();
    return std::move(report_);
  }

 private:
  template <class F>
  void phase(const char* name, F&& work) {
    const Timer timer;
    work();
    report_.phases.push_back({name, over_ranks(timer.seconds(), communicator_)});
  }

  void check_options() const {
    require_count(count_);
    if (options_.mode == Mode::power) throw Error(ErrorKind::usage, "--mode power iterates one vector; leave out --rhs");
    if (options_.verify_mode == VerifyMode::sampled)
      throw Error(ErrorKind::usage, "with --rhs every entry is verified; leave =sampled out");
    if (options_.load.plan.tune)
      throw Error(ErrorKind::usage, "with --rhs all kernels that promise something are measured; leave --measure out");
    if (options_.load.plan.kernel != "auto") find_spmm_kernel(options_.load.plan.kernel, context_.device().backend);
    if (!options_.output.empty()) {
      check_vector_suffix(options_.output);
      check_vector_writable(options_.output);
    }
  }

  std::int64_t original_row(std::int64_t row) const {
    return original_.empty() ? row : original_[static_cast<std::size_t>(row)];
  }

  /// A dense matrix in the order of the source's rows.
  HostVector<double> entries(const VectorSource& source, std::int64_t rows, bool permuted) const {
    return permuted && !original_.empty() ? collect(source, original_) : source.read(0, rows);
  }

  void write() {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(matrix_.rows));
    for (std::int64_t i = 0; i < matrix_.rows; ++i) indices[static_cast<std::size_t>(i)] = original_row(i);
    write_vector(options_.output, "y", matrix_.rows, sum_type(options_.load.type), indices, result_, communicator_, count_);
    report_.output = options_.output;
  }

  void choose() {
    ConversionInput input(matrix_.view(), options_.load.type, context_.stream());
    SpmmTuner tuner(input);
    SpmmRequest request;
    request.kernel = options_.load.plan.kernel;
    request.policy = options_.load.plan.policy;
    request.measure = options_.load.plan.measure;
    request.reproducible = options_.load.plan.reproducible;
    chosen_ = tuner.choose({count_}, request);
  }

  Buffer dense(const HostVector<double>& values, ValueType type, const char* what) {
    const std::size_t bytes = values.size() * size_of(type);
    require_memory(context_.device(), static_cast<std::int64_t>(bytes), what);
    Buffer buffer(context_.device(), bytes);
    to_device(buffer.data(), values, type, context_.stream());
    return buffer;
  }

  void set_y() {
    if (y0_source_) {
      y_ = dense(y0_values_, sum_type(options_.load.type), "Y");
      return;
    }
    const std::size_t bytes = static_cast<std::size_t>(matrix_.rows * count_) * size_of(sum_type(options_.load.type));
    require_memory(context_.device(), static_cast<std::int64_t>(bytes), "Y");
    y_ = Buffer(context_.device(), bytes);
    fill_bytes(y_.data(), 0xff, bytes, context_.stream());  // NaN: an entry nobody writes cannot pass
  }

  void product() {
    chosen_.plan->multiply(options_.alpha, x_.data(), count_, options_.beta, y_.data(), count_, context_.stream());
  }

  /// Every entry against a sequential f64 sum over rows that are read again.
  VerifyResult check() {
    VerifyResult result;
    std::mutex mutex;
    const ValueType type = options_.load.type;
    parallel_ranges(std::ssize(x_values_), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        double& x = x_values_[static_cast<std::size_t>(i)];
        x = rounded(type, x);
      }
    });
    const double u = unit_roundoff(type);
    for_each_slice(*source_.rows, 0, source_.rows->rows(), [&](std::int64_t first, const CsrView& rows) {
      parallel_ranges(rows.rows, 256, [&](std::int64_t begin, std::int64_t end) {
        VerifyResult mine;
        std::vector<double> values;  // of a row, as the device has them
        for (std::int64_t i = begin; i < end; ++i) {
          const auto from = static_cast<std::size_t>(rows.row_ptr[static_cast<std::size_t>(i)] - rows.row_ptr[0]),
                     to = static_cast<std::size_t>(rows.row_ptr[static_cast<std::size_t>(i) + 1] - rows.row_ptr[0]);
          values.clear();
          for (std::size_t k = from; k < to; ++k) values.push_back(rounded(type, rows.values[k]));
          bool wrong = false;
          for (std::int64_t j = 0; j < count_; ++j) {
            double sum = 0, absolute = 0;
            for (std::size_t k = from; k < to; ++k) {
              const double term = values[k - from] * x_values_[static_cast<std::size_t>(rows.col_idx[k] * count_ + j)];
              sum += term, absolute += std::abs(term);
            }
            const auto at = static_cast<std::size_t>((first + i) * count_ + j);
            const double old = y0_source_ ? options_.beta * y0_values_[at] : 0;
            const double expected = options_.alpha * sum + old;
            const double bound =
                2 * u * ((static_cast<double>(to - from) + 2) * std::abs(options_.alpha) * absolute + 2 * std::abs(old));
            const double error = std::abs(result_[at] - expected);
            if (error <= bound) continue;
            wrong = true;
            if (mine.worst_row < 0 || !(error <= mine.worst_error)) {
              mine.worst_row = original_row(first + i);
              mine.worst_error = error, mine.worst_bound = bound;
              mine.worst_computed = result_[at], mine.worst_expected = expected;
            }
          }
          mine.wrong_rows += wrong;
        }
        const std::lock_guard lock(mutex);
        if (mine.worst_row >= 0 && (result.worst_row < 0 || !(mine.worst_error <= result.worst_error)))
          result.worst_row = mine.worst_row, result.worst_error = mine.worst_error, result.worst_bound = mine.worst_bound,
          result.worst_computed = mine.worst_computed, result.worst_expected = mine.worst_expected;
        result.wrong_rows += mine.wrong_rows;
        result.rows_checked += end - begin;
      });
    });
    result.passed = result.wrong_rows == 0;
    return result;
  }

  void iterate() {
    report_.copy_bandwidth = over_ranks(measure_copy_bandwidth(context_.stream()), communicator_);
    Stream& stream = context_.stream();
    std::vector<double> seconds;
    Event start(stream.device()), end(stream.device());
    for (std::int64_t i = 0; i < options_.iterations; ++i) {
      start.record(stream);
      product();
      end.record(stream);
      stream.synchronize();
      seconds.push_back(end.seconds_since(start));
      report(options_.progress, "iterate", i + 1, options_.iterations);
    }
    std::sort(seconds.begin(), seconds.end());
    report_.iteration = {options_.iterations, seconds[seconds.size() / 2], seconds.front(), seconds.back(),
                         std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size())};
    report_.local = report_.iteration;
  }

  void describe() {
    MultiplyReport& r = report_;
    const SpmmPlan& plan = *chosen_.plan;
    r.matrix = source_.rows->name();
    r.access = source_.access;
    r.type = name(options_.load.type);
    r.mode = "repeat";
    r.right_hand_sides = count_;
    r.rows = matrix_.rows, r.cols = matrix_.cols, r.nnz = matrix_.nnz();
    r.alpha = options_.alpha, r.beta = options_.beta;
    r.backend = name(context_.device().backend), r.backend_why = context_.placement().why;
    r.ranks = context_.placement().ranks;
    r.threads_per_rank = thread_count();
    r.partition_method = "one part", r.partition_origin = "one rank", r.sort = order_text(source_);
    r.part_rows = over_ranks(static_cast<double>(r.rows), communicator_);
    r.part_nnz = over_ranks(static_cast<double>(r.nnz), communicator_);
    r.kernel = plan.kernel, r.format = plan.storage().format, r.policy = plan.tunables(), r.kernel_why = chosen_.why;
    r.reproducible = plan.reproducible();
    r.kernel_of_rank = {r.kernel + (r.policy.empty() ? "" : " " + r.policy)};
    r.measurements = chosen_.measurements;
    r.decision = name(chosen_.decision);
    r.choosing = over_ranks(chosen_.choosing_seconds, communicator_);
    r.choosing_products = chosen_.product_seconds > 0 ? chosen_.choosing_seconds / chosen_.product_seconds : 0;
    r.exchange = "none", r.exchange_why = "one rank";
    const auto value = static_cast<double>(size_of(options_.load.type)),
               sum = static_cast<double>(size_of(sum_type(options_.load.type)));
    const double dense_bytes =
        static_cast<double>(count_) * (value * static_cast<double>(r.cols) + sum * static_cast<double>(r.rows));
    const auto stored = static_cast<double>(plan.storage().bytes);
    if (r.iteration.median > 0) {
      r.gflops = 2e-9 * static_cast<double>(r.nnz) * static_cast<double>(count_) / r.iteration.median;
      const double again = r.beta != 0 ? sum * static_cast<double>(count_ * r.rows) : 0;
      r.bandwidth = over_ranks((stored + dense_bytes + again) / r.iteration.median, communicator_);
    }
    r.device_bytes = over_ranks(stored + dense_bytes + static_cast<double>(plan.extra_bytes()), communicator_);
    r.host_peak_bytes = over_ranks(static_cast<double>(peak_host_memory()), communicator_);
  }

  Communicator& communicator_;
  const MultiplyOptions& options_;
  std::int64_t count_;
  Context context_;
  MatrixSource source_;
  HostCsr matrix_;
  ChosenSpmmPlan chosen_;
  std::unique_ptr<VectorSource> y0_source_;
  HostVector<std::int64_t> original_;  ///< row of each of the source's rows; empty if they are in original order
  HostVector<double> x_values_, y0_values_, result_;
  Buffer x_, y_;
  MultiplyReport report_;
};

}  // namespace

MultiplyReport multiply_many(Communicator& communicator, const MultiplyOptions& options, std::int64_t right_hand_sides) {
  communicator.together([&] {
    if (communicator.size() > 1)
      throw Error(ErrorKind::usage, fmt::format("--rhs multiplies on one rank; this run has {}", communicator.size()));
  });
  return Run(communicator, options, right_hand_sides)();
}

}  // namespace shardmat
