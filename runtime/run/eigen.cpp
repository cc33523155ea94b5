#include "runtime/run/eigen.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/timer.h"
#include "partition/source/row_source.h"
#include "partition/vectors/vector_file.h"
#include "runtime/base/break_on_error.h"
#include "runtime/context/context_scope.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/run/reported_run.h"
#include "runtime/run/time_product.h"
#include "runtime/solvers/loop/penalty_rows.h"
#include "runtime/source/matrix_source.h"

namespace shardmat {
namespace {

class EigenRun : ReportedRun<EigenOptions, EigenReport> {
 public:
  EigenRun(Context& context, const EigenOptions& options) : ReportedRun(context, options), settings_(options.settings) {}

  EigenReport operator()() {
    return break_on_error(communicator_, [&] {
      open();
      load();
      if (options_.method == EigenMethod::power) run_power();
      else run_lanczos();
      if (!options_.vectors.empty()) write();
      return std::move(report_);
    });
  }

 private:
  void open() {
    communicator_.run_agreed([&] {
      const auto refuse = [](const char* text, const char* setting) { throw Error(ErrorKind::usage, text, setting); };
      if (options_.load.right_hand_sides != 1)
        refuse("eigenvalues are computed with one right-hand side", "right_hand_sides");
      if (options_.method == EigenMethod::power && settings_.count != 1)
        refuse("the power method gives one eigenvalue; take lanczos for more", "count");
      if (options_.method == EigenMethod::power && settings_.which != Which::largest)
        refuse("the power method gives the eigenvalue of the largest magnitude; take lanczos for others", "which");
      if (options_.vectors.empty()) return;
      check_vector_suffix(options_.vectors);
      if (communicator_.rank() == 0) check_vector_writable(options_.vectors, settings_.count);  // it writes
    });
    source_ = open_matrix(options_.matrix, communicator_,
                          {options_.allow_nonfinite, options_.load.method, options_.load.progress, false, options_.choices,
                           false, options_.load.node_block_size});
    communicator_.run_agreed([&] {
      const RowSource& rows = *source_.rows;
      if (rows.rows() != rows.cols())
        throw Error(ErrorKind::usage,
                    fmt::format("eigenvalues need a square matrix; {} is {} × {}", rows.name(), rows.rows(), rows.cols()));
      if (rows.rows() == 0)
        throw Error(ErrorKind::input,
                    fmt::format("{} has no rows, so it has no eigenvalues; give a matrix with rows", rows.name()));
    });
  }

  void load() { matrix_ = std::make_unique<DistributedMatrix>(source_, context_, options_.load); }

  void make_vectors(std::int64_t count) { vectors_.emplace(*matrix_, VectorLayout::rows, sum_type(matrix_->type()), count); }

  void run_power() {
    PowerOptions options;
    options.tolerance = settings_.tolerance;
    options.max_iterations = settings_.max_iterations;
    options.seed = settings_.seed;
    const Timer timer;
    PowerMethod power(*matrix_, options);
    look_for_penalty_rows(power.product());
    made(timer.seconds());
    make_vectors(1);
    phase("iterate", [&] { report_.result = power.run(*vectors_, options_.monitor, options_.stop); });
    describe(power.product(), power.summed_by(),
             power.device_bytes() + static_cast<std::int64_t>(power.product().y_bytes()));
  }

  void run_lanczos() {
    const Timer timer;
    Lanczos lanczos(*matrix_, settings_);
    look_for_penalty_rows(lanczos.product());
    made(timer.seconds());
    settings_ = lanczos.options();
    phase("iterate", [&] { report_.result = lanczos.run(options_.monitor, options_.stop); });
    if (!options_.vectors.empty()) {
      make_vectors(lanczos.wanted());
      lanczos.copy_vectors(*vectors_, context_.stream());
    }
    describe(lanczos.product(), lanczos.summed_by(), lanczos.device_bytes());
  }

  /// Before the host rows are dropped.
  void look_for_penalty_rows(const Product& product) {
    const PenaltyFindings found = find_penalty_rows(
        *matrix_, PenaltyRows::automatic, [&]() -> const Product& { return product; }, context_.stream());
    report_.penalty_rows = found.count, report_.penalty_ratio = found.largest_ratio;
  }

  /// The method's object was made in `seconds`, with its product.
  void made(double seconds) {
    matrix_->drop_host_rows();
    add_load_phases(matrix_->load_times(), communicator_, report_.phases);
    report_.phases.push_back(
        {"set up method", over_ranks(std::max(0.0, seconds - matrix_->load_times().plan), communicator_)});
  }

  void write() {
    phase("write", [&] { vectors_->write(options_.vectors, "vectors", context_.stream()); });
    report_.output = options_.vectors;
  }

  void describe(const Product& product, std::string_view summed_by, std::int64_t bytes) {
    EigenReport& r = report_;
    const ProductSeconds seconds = time_product(product, context_.stream());
    r.product_seconds = seconds.product, r.exchange_seconds = seconds.exchange;
    describe_product(product, source_, options_.load, r);
    r.method = options_.method;
    r.settings = settings_;
    r.sums = summed_by;
    r.seconds_an_iteration = r.result.seconds / static_cast<double>(r.result.iterations);
    r.device_bytes = over_ranks(static_cast<double>(matrix_->device_bytes() + bytes), communicator_);
    r.host_peak_bytes = over_ranks(static_cast<double>(peak_host_memory()), communicator_);
  }

  LanczosOptions settings_;
  MatrixSource source_;
  std::unique_ptr<DistributedMatrix> matrix_;
  std::optional<DistributedVector> vectors_;
};

}  // namespace

std::string_view name(EigenMethod method) { return method == EigenMethod::power ? "power" : "lanczos"; }
std::string_view name(Which which) {
  return which == Which::smallest ? "smallest" : which == Which::largest ? "largest" : "both";
}

EigenReport eigen(Communicator& communicator, const EigenOptions& options) {
  Context context(communicator, options.backend, options.threads);
  return eigen(context, options);
}

EigenReport eigen(Context& context, const EigenOptions& options) {
  const ContextScope scope(context);
  return EigenRun(context, options)();
}

}  // namespace shardmat
