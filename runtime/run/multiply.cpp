#include "runtime/run/multiply.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/exchange/exchange.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/choose/registry.h"
#include "kernels/choose/spmm_registry.h"
#include "partition/files/atomic_files.h"
#include "partition/shard/shard_file.h"
#include "partition/vectors/vector_file.h"
#include "runtime/base/break_on_error.h"
#include "runtime/context/context_scope.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/product.h"
#include "runtime/matrix/row_plan.h"
#include "runtime/matrix/vectors.h"
#include "runtime/run/multiply_transposed.h"
#include "runtime/run/reported_run.h"
#include "runtime/source/hdf5_on_ranks.h"
#include "runtime/source/matrix_source.h"
#include "runtime/timing/iterate.h"

namespace shardmat {
namespace {

class MultiplyRun : ReportedRun<MultiplyOptions, MultiplyReport> {
 public:
  MultiplyRun(Context& context, const MultiplyOptions& options) : ReportedRun(context, options) {}

  MultiplyReport operator()() {
    return break_on_error(communicator_, [&] { return steps(); });
  }

 private:
  MultiplyReport steps() {
    check_options();
    source_ = open_matrix(options_.matrix, communicator_,
                          {options_.allow_nonfinite, options_.load.method, options_.progress, false, options_.choices, false,
                           options_.load.node_block_size});
    communicator_.run_agreed([&] {
      if (options_.mode != Mode::repeat && source_.rows->rows() != source_.rows->cols())
        throw Error(ErrorKind::usage,
                    fmt::format("mode {} needs a square matrix; {} is {} × {}", name(options_.mode), source_.rows->name(),
                                source_.rows->rows(), source_.rows->cols()),
                    "mode");
      require_rows_for_files(options_.output, options_.files, source_.rows->rows());
    });
    describe_on_all_ranks(VectorFile::hdf5_input(options_.x, "x"), communicator_);
    if (options_.beta != 0) describe_on_all_ranks(VectorFile::hdf5_input(options_.y0, "y0"), communicator_);
    communicator_.run_agreed([&] {
      x_source_ = open_vector(options_.x, "x", source_.rows->cols(), options_.seed, columns());
      if (options_.beta != 0)
        y0_source_ = open_vector(options_.y0, "y0", source_.rows->rows(), options_.seed + 1, columns());
    });
    load();
    set_up_vectors();
    first_product();
    if (options_.verify) check();
    if (!report_.verification || report_.verification->passed) {
      iterate_and_write();
    }
    describe();
    return std::move(report_);
  }

  void check_options() {
    communicator_.run_agreed([&] {
      if (options_.iterations < 0) throw Error(ErrorKind::usage, "the number of iterations must be 0 or more", "iterations");
      if (!options_.output.empty()) check_vector_suffix(options_.output);
      if (!options_.output.empty() && communicator_.rank() == 0)
        check_vector_writable(options_.output, columns(), options_.files);  // it writes
      require_consistent(options_, context_.device().backend);
      if (columns() != 1 && options_.verify_mode == VerifyMode::sampled)
        throw Error(ErrorKind::usage, "several right-hand sides are verified in full, not sampled", "verify_mode");
    });
  }

  std::int64_t columns() const { return options_.load.right_hand_sides; }
  Dense y() const { return product_->y_view(y_.data()); }

  void load() {
    LoadOptions load = options_.load;
    load.progress = options_.progress;
    if (options_.verify && options_.verify_mode == VerifyMode::sampled) load.column_sums_above = -1;
    if (options_.verify && options_.verify_mode == VerifyMode::automatic && columns() == 1)
      load.column_sums_above = kFullVerificationLimit;
    load.host_rows = HostRows::drop;
    if (copies_first()) measure_copy();
    matrix_ = std::make_unique<DistributedMatrix>(source_, context_, load);
    product_ = matrix_->product(columns());
    add_load_phases(matrix_->load_times(), communicator_, report_.phases);
  }

  /// True if every rank's part of a file takes more memory than the arrays that measure the copy bandwidth, twice as much to
  /// be sure. They then come before the matrix and add nothing to the peak of the run. Collective.
  bool copies_first() const {
    if (options_.iterations == 0 || source_.file == nullptr) return false;
    const std::int64_t part_bytes =
        CompactCsr::entry_bytes(source_.rows->cols(), options_.load.type) * (source_.file->nnz() / communicator_.size());
    const bool larger = context_.device().backend == Backend::host && part_bytes > 2 * context_.bytes_to_copy();
    return communicator_.all_reduce(larger ? 1 : 0, Reduction::min) == 1;
  }

  void measure_copy() {
    double copy_bandwidth = 0;
    peak_before_copy_ = peak_host_memory();
    communicator_.run_agreed([&] { copy_bandwidth = context_.copy_bandwidth(); });
    peak_with_copy_ = peak_host_memory();
    report_.copy_bandwidth = over_ranks(copy_bandwidth, communicator_);
  }

  void set_up_vectors() {
    phase("vectors", [&] {
      communicator_.run_agreed([&] {
        const HostVector<double> x = collect(*x_source_, matrix_->x_rows()->ids());
        require_in_range(matrix_->type(), x, x_source_->name());
        to_device(product_->x().data, x, matrix_->type(), context_.stream());
        const std::size_t bytes = product_->y_bytes();
        require_memory(context_.device(), static_cast<std::int64_t>(bytes), "y");
        y_ = Buffer(context_.device(), bytes);
        fill_bytes(y_.data(), 0xff, bytes, context_.stream());  // NaN: a row nobody writes cannot pass
        if (y0_source_) {
          const HostVector<double> y0 = collect(*y0_source_, matrix_->y_rows()->ids());
          require_in_range(sum_type(matrix_->type()), y0, y0_source_->name());
          to_device(y_.data(), y0, sum_type(matrix_->type()), context_.stream());
        }
      });
    });
  }

  void first_product() {
    phase("first product", [&] {
      product_->multiply(options_.alpha, options_.beta, y(), context_.stream());
      product_->wait(context_.stream());
      communicator_.run_agreed([&] {
        result_ = to_host(y_.data(), matrix_->local_rows() * columns(), sum_type(matrix_->type()), context_.stream());
      });
    });
  }

  void check() {
    phase("verify", [&] {
      const CheckedProduct product{options_.alpha, options_.beta, *x_source_, y0_source_.get(), columns(), result_};
      report_.verification = verify(*matrix_, source_, product, options_.verify_mode, options_.progress);
    });
  }

  void iterate_and_write() {
    if (options_.iterations > 0) {
      if (peak_with_copy_ == 0) measure_copy();
      IterateOptions options;
      options.mode = options_.mode;
      options.iterations = options_.iterations;
      options.alpha = options_.alpha;
      options.beta = options_.beta;
      options.graph = options_.graph;
      options.progress = options_.progress;
      phase("iterate", [&] { iterated_ = iterate(*product_, y(), options); });
      report_.sums = iterated_.sums;
      if (options_.mode == Mode::dots) report_.xy = iterated_.estimates[0].xy, report_.yy = iterated_.estimates[0].yy;
      if (options_.mode == Mode::power) {
        report_.eigenvalue = iterated_.estimates[0].eigenvalue;
        report_.residual = iterated_.estimates[0].residual;
        communicator_.run_agreed(
            [&] { result_ = to_host(product_->x().data, matrix_->local_rows(), matrix_->type(), context_.stream()); });
      }
    }
    if (options_.output.empty()) return;
    phase("write", [&] {
      write_vector(options_.output, options_.mode == Mode::power ? "x" : "y", matrix_->rows(), sum_type(matrix_->type()),
                   matrix_->y_rows()->ids(), result_, communicator_, columns(), options_.files);
    });
    report_.output = options_.output;
  }

  void describe() {
    MultiplyReport& r = report_;
    const DistributedMatrix& m = *matrix_;
    const Product& p = *product_;
    describe_product(p, source_, options_.load, r);
    r.mode = name(options_.mode);
    r.alpha = options_.alpha, r.beta = options_.beta;
    r.x = x_source_->name();
    r.y0 = y0_source_ ? y0_source_->name() : "";
    r.graph = iterated_.graph;
    r.iteration = iterated_.iteration, r.local = iterated_.local, r.exchange_times = iterated_.exchange;
    if (r.iteration.median > 0) r.gflops = 2e-9 * static_cast<double>(m.nnz() * columns()) / r.iteration.median;
    const double bytes = static_cast<double>(p.compulsory_bytes(options_.beta)),
                 device_bytes = static_cast<double>(m.device_bytes() + p.device_bytes()) + static_cast<double>(y_.bytes());
    r.bandwidth = over_ranks(r.local.median > 0 ? bytes / r.local.median : 0, communicator_);
    r.device_bytes = over_ranks(device_bytes, communicator_);
    r.host_peak_bytes = over_ranks(static_cast<double>(peak_of_run()), communicator_);
  }

  /// Without the arrays that measured the copy bandwidth, unless something took more after them.
  std::int64_t peak_of_run() const {
    const std::int64_t peak = peak_host_memory();
    return peak > peak_with_copy_ ? peak : peak_before_copy_;
  }

  MatrixSource source_;
  std::int64_t peak_before_copy_ = 0, peak_with_copy_ = 0;
  std::unique_ptr<DistributedMatrix> matrix_;
  std::unique_ptr<Product> product_;
  std::unique_ptr<VectorSource> x_source_, y0_source_;
  Buffer y_;
  HostVector<double> result_;
  IterateResult iterated_;
};

}  // namespace

namespace {

void require_mode(const MultiplyOptions& options) {
  if (options.mode == Mode::repeat) return;
  const auto refuse = [&](const char* why, const char* setting) {
    throw Error(ErrorKind::usage, fmt::format("mode {} {}", name(options.mode), why), setting);
  };
  if (options.alpha != 1) refuse("multiplies y = A x: alpha must be 1", "alpha");
  if (options.beta != 0) refuse("multiplies y = A x: beta must be 0", "beta");
  if (options.iterations == 0) refuse("needs at least one iteration", "iterations");
  if (options.load.right_hand_sides != 1) refuse("is for one right-hand side", "right_hand_sides");
}

}  // namespace

void require_consistent(const MultiplyOptions& options, Backend backend) {
  const LoadOptions& load = options.load;
  require_mode(options);
  if (is_half(load.type) && load.right_hand_sides < 2)
    throw Error(ErrorKind::usage, fmt::format("type {} is for two right-hand sides or more", name(load.type)),
                "right_hand_sides");
  require_column_block(load.right_hand_sides, load.column_block);
  if (load.right_hand_sides != 1) {
    require_count(load.right_hand_sides);
    if (load.plan.tune)
      throw Error(ErrorKind::usage,
                  "measuring every kernel is for one right-hand side; with several, promising kernels are measured anyway",
                  "tune");
  }
  const std::string& kernel = load.plan.kernel;
  if (kernel != "auto" && load.right_hand_sides == 1) find_kernel(kernel, backend);
  if (kernel != "auto" && load.right_hand_sides > 1) find_spmm_kernel(kernel, backend);
  make_partition(load.method, std::vector<std::int64_t>{0}, 1);
  find_exchange(load.exchange);
}

MultiplyReport multiply(Communicator& communicator, const MultiplyOptions& options) {
  Context context(communicator, options.backend, options.threads);
  return multiply(context, options);
}

MultiplyReport multiply(Context& context, const MultiplyOptions& options) {
  const ContextScope scope(context);
  if (options.transpose) return multiply_transposed(context, options);
  return MultiplyRun(context, options)();
}

}  // namespace shardmat
