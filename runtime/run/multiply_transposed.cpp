#include "runtime/run/multiply_transposed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/timer.h"
#include "partition/files/atomic_files.h"
#include "partition/source/row_source.h"
#include "partition/vectors/vector_file.h"
#include "runtime/base/break_on_error.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/product.h"
#include "runtime/matrix/vectors.h"
#include "runtime/run/reported_run.h"
#include "runtime/source/hdf5_on_ranks.h"
#include "runtime/source/matrix_source.h"

namespace shardmat {
namespace {

/// The time of an iteration is that of its slowest rank.
IterationTimes times_of_slowest(std::vector<double> seconds, Communicator& ranks) {
  IterationTimes times;
  times.iterations = std::ssize(seconds);
  if (seconds.empty()) return times;
  const auto median = [](std::vector<double> some) {
    std::nth_element(some.begin(), some.begin() + std::ssize(some) / 2, some.end());
    return some[some.size() / 2];
  };
  times.of_ranks = over_ranks(median(seconds), ranks);
  ranks.all_reduce(std::span<double>(seconds), Reduction::max);
  times.min = *std::min_element(seconds.begin(), seconds.end());
  times.max = *std::max_element(seconds.begin(), seconds.end());
  times.median = median(seconds);
  for (const double one : seconds) times.mean += one / static_cast<double>(seconds.size());
  times.samples = std::move(seconds);
  return times;
}

class TransposedRun : ReportedRun<MultiplyOptions, MultiplyReport> {
 public:
  TransposedRun(Context& context, const MultiplyOptions& options) : ReportedRun(context, options) {}

  MultiplyReport operator()() {
    return break_on_error(communicator_, [&] {
      report_.transpose.emplace();
      open();
      load();
      first_product();
      if (options_.verify) phase("verify", [&] { check(); });
      if (!report_.verification || report_.verification->passed) {
        if (!options_.output.empty()) write();  // before others are timed, which change y if beta is not 0
        if (options_.iterations > 0) phase("iterate", [&] { iterate(); });
      }
      describe();
      return std::move(report_);
    });
  }

 private:
  std::int64_t columns() const { return options_.load.right_hand_sides; }
  Stream& stream() { return context_.stream(); }

  void open() {
    communicator_.run_agreed([&] {
      if (options_.iterations < 0) throw Error(ErrorKind::usage, "the number of iterations must be 0 or more", "iterations");
      if (options_.mode != Mode::repeat)
        throw Error(ErrorKind::usage,
                    fmt::format("mode {} is for products with the matrix, not with its transpose", name(options_.mode)),
                    "mode");
      if (options_.verify && options_.verify_mode == VerifyMode::sampled)
        throw Error(ErrorKind::usage, "products with the transpose are verified in full, not sampled", "verify_mode");
      if (is_half(options_.load.type))
        throw Error(ErrorKind::usage,
                    fmt::format("type {} has no products with the transpose; take f64 or f32", name(options_.load.type)),
                    "type");
      if (!options_.output.empty()) check_vector_suffix(options_.output);
      if (!options_.output.empty() && communicator_.rank() == 0)
        check_vector_writable(options_.output, columns(), options_.files);  // it writes
      require_consistent(options_, context_.device().backend);
    });
    source_ = open_matrix(options_.matrix, communicator_,
                          {options_.allow_nonfinite, options_.load.method, options_.progress, false, options_.choices, false,
                           options_.load.node_block_size});
    communicator_.run_agreed([&] { require_rows_for_files(options_.output, options_.files, source_.rows->cols()); });
    describe_on_all_ranks(VectorFile::hdf5_input(options_.x, "x"), communicator_);
    if (options_.beta != 0) describe_on_all_ranks(VectorFile::hdf5_input(options_.y0, "y0"), communicator_);
    communicator_.run_agreed([&] {
      x_source_ = open_vector(options_.x, "x", source_.rows->rows(), options_.seed, columns());
      if (options_.beta != 0)
        y0_source_ = open_vector(options_.y0, "y0", source_.rows->cols(), options_.seed + 1, columns());
    });
  }

  void load() {
    LoadOptions load = options_.load;
    load.progress = options_.progress;
    matrix_ = std::make_unique<DistributedMatrix>(source_, context_, load);
    product_ = matrix_->product(columns());
    transposed_ = matrix_->transposed_product(columns());
    matrix_->drop_host_rows();
    add_load_phases(matrix_->load_times(), communicator_, report_.phases);
    phase("vectors", [&] {
      x_.emplace(*matrix_, VectorLayout::rows, matrix_->type(), columns());
      y_.emplace(*matrix_, VectorLayout::columns, matrix_->type(), columns());
      x_->read(*x_source_, stream());
      if (y0_source_) y_->read(*y0_source_, stream());
    });
  }

  void first_product() {
    phase("first product", [&] {
      transposed_->multiply(options_.alpha, x_->view(), options_.beta, y_->view(), stream());
      transposed_->wait(stream());
    });
  }

  /// Every entry of y, on all ranks: sums of this rank's rows are added up over the ranks in f64.
  void check() {
    const auto entries = static_cast<std::size_t>(matrix_->cols() * columns());
    std::vector<double> expected, absolute, terms;
    const auto width = static_cast<std::size_t>(columns());
    communicator_.run_agreed([&] {
      require_host_memory(24 * static_cast<std::int64_t>(entries), "the verification of a transposed product");
      expected.assign(entries, 0), absolute.assign(entries, 0), terms.assign(static_cast<std::size_t>(matrix_->cols()), 0);
      const RowMap& rows = *matrix_->y_rows();
      const HostVector<std::int64_t> ids = rows.ids_by_place();
      const HostVector<double> x = collect(*x_source_, ids);
      const std::int64_t first = rows.starts()[static_cast<std::size_t>(communicator_.rank())];
      for_each_row_slice(*source_.rows, first, first + rows.local_rows(), [&](std::int64_t begin, const CsrView& some) {
        for (std::int64_t i = 0; i < some.rows; ++i) {
          const auto row = static_cast<std::size_t>(i), place = static_cast<std::size_t>(begin - first + i);
          for (std::int64_t k = some.row_ptr[row] - some.row_ptr[0]; k < some.row_ptr[row + 1] - some.row_ptr[0]; ++k) {
            const auto column = static_cast<std::size_t>(some.col_idx[static_cast<std::size_t>(k)]);
            const double value = rounded(matrix_->type(), some.values[static_cast<std::size_t>(k)]);
            terms[column] += 1;
            for (std::size_t j = 0; j < width; ++j) {
              const double term = value * rounded(matrix_->type(), x[place * width + j]);
              expected[column * width + j] += term, absolute[column * width + j] += std::abs(term);
            }
          }
        }
      });
    });
    communicator_.all_reduce(std::span<double>(expected), Reduction::sum);
    communicator_.all_reduce(std::span<double>(absolute), Reduction::sum);
    communicator_.all_reduce(std::span<double>(terms), Reduction::sum);
    compare(expected, absolute, terms);
  }

  void compare(const std::vector<double>& expected, const std::vector<double>& absolute, const std::vector<double>& terms) {
    VerifyResult result;
    // Columns of the source are numbered in its order, in which a square matrix that was permuted has its rows, too.
    const HostVector<double> mine = to_host(y_->view().data, y_->local_rows() * columns(), y_->type(), stream());
    const RowMap& map = *matrix_->x_rows();
    const std::int64_t first = map.starts()[static_cast<std::size_t>(communicator_.rank())];
    HostVector<double> y0;
    if (y0_source_) y0 = collect(*y0_source_, map.ids());
    double worst = -1;
    const auto width = static_cast<std::size_t>(columns());
    for (std::size_t i = 0; i < static_cast<std::size_t>(y_->local_rows()); ++i) {
      const auto column = static_cast<std::size_t>(first + map.place(i));
      bool right = true;
      for (std::size_t j = 0; j < width; ++j) {
        const double old = y0_source_ ? options_.beta * rounded(matrix_->type(), y0[i * width + j]) : 0;
        const double wanted = options_.alpha * expected[column * width + j] + old, got = mine[i * width + j];
        const double bound = 2 * unit_roundoff(matrix_->type()) * (terms[column] + communicator_.size() + 3) *
                             (std::abs(options_.alpha) * absolute[column * width + j] + std::abs(old));
        const double error = std::abs(got - wanted);
        const double share = error == 0 ? 0 : error <= bound ? error / bound : std::numeric_limits<double>::infinity();
        right &= error <= bound;
        if (share <= worst) continue;
        worst = share;
        result.worst_row = map.ids()[i], result.worst_error = error, result.worst_bound = bound;
        result.worst_computed = got, result.worst_expected = wanted;
      }
      result.wrong_rows += right ? 0 : 1;
    }
    const auto of_ranks = communicator_.all_gather(worst);
    const auto rank = static_cast<int>(std::max_element(of_ranks.begin(), of_ranks.end()) - of_ranks.begin());
    double figures[] = {static_cast<double>(result.worst_row), result.worst_error, result.worst_bound, result.worst_computed,
                        result.worst_expected};
    communicator_.broadcast(std::span<double>(figures), rank);
    result.worst_row = static_cast<std::int64_t>(figures[0]), result.worst_error = figures[1];
    result.worst_bound = figures[2], result.worst_computed = figures[3], result.worst_expected = figures[4];
    result.rows_checked = communicator_.all_reduce(y_->local_rows(), Reduction::sum);
    result.wrong_rows = communicator_.all_reduce(result.wrong_rows, Reduction::sum);
    result.passed = result.wrong_rows == 0;
    report_.verification = result;
  }

  /// One after another, each of them once in turn, so that both meet the same machine.
  void iterate() {
    const auto of_x = open_vector("random", "x", matrix_->cols(), options_.seed + 2, columns());
    DistributedVector x(*matrix_, VectorLayout::columns, matrix_->type(), columns()),
        y(*matrix_, VectorLayout::rows, matrix_->type(), columns());
    x.read(*of_x, stream());
    copy_on_device(product_->x().data, x.view().data,
                   static_cast<std::size_t>(x.local_rows() * columns()) * size_of(x.type()), stream());
    std::vector<double> with, without, forward;
    const auto time = [&](std::vector<double>& seconds, const auto& work) {
      communicator_.barrier();
      const Timer timer;
      work();
      transposed_->wait(stream());
      seconds.push_back(timer.seconds());
    };
    for (std::int64_t i = -1; i < options_.iterations; ++i) {
      time(with, [&] { transposed_->multiply(options_.alpha, x_->view(), options_.beta, y_->view(), stream()); });
      time(without, [&] { transposed_->multiply_local(options_.alpha, x_->view(), 0, x.view(), stream()); });
      time(forward, [&] { product_->multiply(options_.alpha, 0, y.view(), stream()); });
      if (i < 0) with.clear(), without.clear(), forward.clear();  // those warmed up
      report(options_.progress, "multiplying", i + 1, options_.iterations);
    }
    report_.iteration = times_of_slowest(std::move(with), communicator_);
    report_.local = times_of_slowest(std::move(without), communicator_);
    report_.transpose->product_of_matrix = times_of_slowest(std::move(forward), communicator_);
  }

  void write() {
    phase("write", [&] { y_->write(options_.output, "y", stream(), options_.files); });
    report_.output = options_.output;
  }

  void describe() {
    MultiplyReport& r = report_;
    describe_product(*product_, source_, options_.load, r);
    r.mode = name(options_.mode);
    r.alpha = options_.alpha, r.beta = options_.beta;
    r.x = x_source_->name();
    r.y0 = y0_source_ ? y0_source_->name() : "";
    r.transpose->kernel = transposed_->kernel();
    r.transpose->map_bytes = over_ranks(static_cast<double>(matrix_->transpose_bytes()), communicator_);
    if (r.iteration.median > 0) r.gflops = 2e-9 * static_cast<double>(matrix_->nnz() * columns()) / r.iteration.median;
    const double bytes = static_cast<double>(product_->compulsory_bytes(options_.beta));
    r.bandwidth = over_ranks(r.local.median > 0 ? bytes / r.local.median : 0, communicator_);
    const double vectors = static_cast<double>((x_->local_rows() + y_->local_rows()) * columns()) *
                           static_cast<double>(size_of(matrix_->type()));
    r.device_bytes =
        over_ranks(static_cast<double>(matrix_->device_bytes() + transposed_->device_bytes()) + vectors, communicator_);
    r.host_peak_bytes = over_ranks(static_cast<double>(peak_host_memory()), communicator_);
  }

  MatrixSource source_;
  std::unique_ptr<DistributedMatrix> matrix_;
  std::unique_ptr<Product> product_;
  std::unique_ptr<TransposedProduct> transposed_;
  std::unique_ptr<VectorSource> x_source_, y0_source_;
  std::optional<DistributedVector> x_, y_;
};

}  // namespace

MultiplyReport multiply_transposed(Context& context, const MultiplyOptions& options) {
  return TransposedRun(context, options)();
}

}  // namespace shardmat
