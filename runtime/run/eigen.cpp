#include "runtime/run/eigen.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
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
#include "runtime/matrix/load_part.h"
#include "runtime/run/node_coordinates.h"
#include "runtime/run/reported_run.h"
#include "runtime/run/time_product.h"
#include "runtime/solvers/direct/factors.h"
#include "runtime/solvers/eigen/panels.h"
#include "runtime/solvers/loop/penalty_rows.h"
#include "runtime/solvers/multigrid/known_nodes.h"
#include "runtime/source/matrix_source.h"

namespace shardmat {
namespace {

class EigenRun : ReportedRun<EigenOptions, EigenReport> {
 public:
  EigenRun(Context& context, const EigenOptions& options)
      : ReportedRun(context, options), method_(options.method), settings_(options.settings) {}

  EigenReport operator()() {
    return break_on_error(communicator_, [&] {
      open();
      load();
      if (method_ == EigenMethod::power) run_power();
      else if (method_ == EigenMethod::lanczos) run_lanczos();
      else run_pair();
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
      method_ = choose_eigen_method(options_);
      if (options_.vectors.empty()) return;
      check_vector_suffix(options_.vectors);
      if (communicator_.rank() == 0) check_vector_writable(options_.vectors, settings_.count);  // it writes
    });
    source_ = open_source(options_.matrix);
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

  MatrixSource open_source(const std::string& name) {
    return open_matrix(name, communicator_,
                       {options_.allow_nonfinite, options_.load.method, options_.load.progress, false, options_.choices,
                        name == options_.matrix && is_mesh_file(options_.nodes.coordinates), options_.load.node_block_size});
  }

  /// M on the maps of K.
  std::unique_ptr<DistributedMatrix> load_mass() {
    const MatrixSource source = open_source(communicator_.run_agreed([&] { return mass_file(options_); }));
    report_.mass = source.rows->name();
    communicator_.run_agreed([&] {
      const RowSource &k = *source_.rows, &m = *source.rows;
      if (m.rows() != k.rows() || m.cols() != k.cols())
        throw Error(ErrorKind::usage,
                    fmt::format("{} is {} × {} and {} is {} × {}; K x = λ M x needs matrices of one size", k.name(),
                                k.rows(), k.cols(), m.name(), m.rows(), m.cols()),
                    "mass");
    });
    LoadOptions load = options_.load;
    load.y_rows = matrix_->y_rows();
    load.node_block_size = matrix_->node_block_size();
    return std::make_unique<DistributedMatrix>(source, context_, load);
  }

  void run_pair() {
    const Timer timer;
    std::unique_ptr<DistributedMatrix> mass;
    if (!options_.mass.empty()) mass = load_mass();
    method_ = choose_eigen_method(options_, *matrix_);
    PairOptions options = options_.pair;
    if (!options_.nodes.empty()) {
      matrix_->know_nodes(open_nodes(*matrix_, *source_.rows, options_.nodes));
      if (!options_.nodes.near_null_vectors.empty())
        options.multigrid.near_null_vectors = find_near_null_vectors(*matrix_, *matrix_->nodes());
    }
    const double loading = timer.seconds();
    PairVectors vectors;
    PairResult& found = report_.pair;
    phase("iterate", [&] {
      found = solve_pair(method_ == EigenMethod::lobpcg ? PairMethod::lobpcg : PairMethod::shift_invert, *matrix_,
                         mass.get(), options, vectors, nullptr, options_.monitor, options_.stop);
    });
    report_.phases.back().seconds = over_ranks(found.seconds, communicator_);
    add_load_phases(matrix_->load_times(), communicator_, report_.phases);
    report_.phases.push_back({"load mass", over_ranks(loading, communicator_)});
    report_.phases.push_back({"set up method", over_ranks(found.setup_seconds, communicator_)});
    report_.result = found, report_.options_of_pair = options;
    report_.penalty_rows = found.penalty_rows, report_.penalty_ratio = found.penalty_ratio;
    if (!options_.vectors.empty()) {
      make_vectors(vectors.count);
      copy_vectors(vectors, *vectors_);
    }
    const std::unique_ptr<Product> product = matrix_->product(1);
    describe(*product, communicator_.size() == 1 ? "none" : "MPI", 3 * vectors.x->bytes());
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
    r.method = method_;
    r.settings = settings_;
    r.sums = summed_by;
    r.seconds_an_iteration = r.result.seconds / static_cast<double>(std::max<std::int64_t>(1, r.result.iterations));
    r.device_bytes = over_ranks(static_cast<double>(matrix_->device_bytes() + bytes), communicator_);
    r.host_peak_bytes = over_ranks(static_cast<double>(peak_host_memory()), communicator_);
  }

  EigenMethod method_;
  LanczosOptions settings_;
  MatrixSource source_;
  std::unique_ptr<DistributedMatrix> matrix_;
  std::optional<DistributedVector> vectors_;
};

}  // namespace

std::string_view name(EigenMethod method) {
  switch (method) {
    case EigenMethod::automatic:
      return "auto";
    case EigenMethod::power:
      return "power";
    case EigenMethod::lanczos:
      return "lanczos";
    case EigenMethod::lobpcg:
      return "lobpcg";
    case EigenMethod::shift_invert:
      return "shift_invert";
  }
  return "";
}
std::string_view name(Which which) {
  return which == Which::smallest ? "smallest" : which == Which::largest ? "largest" : "both";
}

EigenMethod choose_eigen_method(const EigenOptions& options) {
  const bool has_mass = !options.mass.empty(), has_shift = options.pair.shift.has_value();
  EigenMethod method = options.method;
  if (method == EigenMethod::automatic)
    method = has_shift ? EigenMethod::shift_invert : has_mass ? EigenMethod::lobpcg : EigenMethod::lanczos;
  const bool of_pairs = method == EigenMethod::lobpcg || method == EigenMethod::shift_invert;
  const auto refuse = [](const char* text, const char* setting) { throw Error(ErrorKind::usage, text, setting); };
  if (!of_pairs && has_mass)
    refuse("lanczos and power take one matrix; take lobpcg or shift_invert for K x = λ M x", "method");
  if (method != EigenMethod::shift_invert && has_shift) refuse("only the method shift_invert takes a shift", "shift");
  if (method != EigenMethod::shift_invert && options.pair.inner != "auto")
    refuse("only the method shift_invert solves systems with K - σM; name it, or give a shift", "inner");
  if (of_pairs && options.settings.which != Which::smallest)
    refuse("lobpcg gives the smallest eigenvalues, and shift_invert those nearest to a shift; take lanczos for others",
           "which");
  if (method == EigenMethod::power && options.settings.count != 1)
    refuse("the power method gives one eigenvalue; take lanczos for more", "count");
  if (method == EigenMethod::power && options.settings.which != Which::largest)
    refuse("the power method gives the eigenvalue of the largest magnitude; take lanczos for others", "which");
  return method;
}

std::string mass_file(const EigenOptions& options) {
  if (options.mass != "auto") return options.mass;
  std::filesystem::path beside(options.matrix);
  if (beside.extension() == ".sti") return beside.replace_extension(".mas").string();
  throw Error(
      ErrorKind::usage,
      fmt::format("auto takes the .mas beside a .sti of CalculiX, and the matrix is {}; name the file of M", options.matrix),
      "mass");
}

bool is_of_pairs(const EigenOptions& options) {
  return options.method == EigenMethod::lobpcg || options.method == EigenMethod::shift_invert ||
         (options.method == EigenMethod::automatic && (options.pair.shift || !options.mass.empty()));
}

double default_eigen_tolerance(bool of_pairs, ValueType type) {
  return of_pairs ? 1e-8 : type == ValueType::f32 ? 1e-5 : 1e-10;
}

EigenMethod choose_eigen_method(const EigenOptions& options, const DistributedMatrix& matrix) {
  constexpr std::int64_t kFewRows = 3000;  // factors take no time
  const EigenMethod method = choose_eigen_method(options);
  const bool small = matrix.rows() <= kFewRows && direct::can_factorise(matrix.context().communicator());
  const bool takes_factors = options.method == EigenMethod::automatic && method == EigenMethod::lobpcg && small;
  return takes_factors ? EigenMethod::shift_invert : method;
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
