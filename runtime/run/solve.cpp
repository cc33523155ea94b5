#include "runtime/run/solve.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/kept_arrays.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/timer.h"
#include "partition/files/atomic_files.h"
#include "partition/source/row_source.h"
#include "partition/vectors/vector_file.h"
#include "runtime/base/break_on_error.h"
#include "runtime/context/context_scope.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/load_part.h"
#include "runtime/matrix/product.h"
#include "runtime/matrix/vectors.h"
#include "runtime/run/node_coordinates.h"
#include "runtime/run/reported_run.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/method_choice.h"
#include "runtime/solvers/multigrid/known_nodes.h"
#include "runtime/solvers/solver_settings.h"
#include "runtime/source/hdf5_on_ranks.h"
#include "runtime/source/matrix_source.h"

namespace shardmat {
namespace {

class SolveRun : ReportedRun<SolveOptions, SolveReport> {
 public:
  SolveRun(Context& context, const SolveOptions& options) : ReportedRun(context, options) {}

  SolveReport operator()() {
    return break_on_error(communicator_, [&] {
      open();
      load();
      solve_it();
      if (may_advise_) find_advice();
      if (keeps_rows_) matrix_->drop_host_rows();
      if (!options_.output.empty()) write();
      if (options_.picture) draw();
      describe();
      return std::move(report_);
    });
  }

 private:
  std::int64_t columns() const { return options_.load.right_hand_sides; }

  void open() {
    communicator_.run_agreed([&] {
      if (options_.solver.solver != kAutomaticMethod) find_method(options_.solver.solver);
      if (options_.solver.preconditioner != kAutomaticPreconditioner) find_preconditioner(options_.solver.preconditioner);
      if (options_.output.empty()) return;
      check_vector_suffix(options_.output);
      if (communicator_.rank() == 0) check_vector_writable(options_.output, columns(), options_.files);  // it writes
    });
    source_ = open_matrix(options_.matrix, communicator_,
                          {options_.allow_nonfinite, options_.load.method, options_.control.progress, false,
                           options_.choices, is_mesh_file(options_.nodes.coordinates), options_.load.node_block_size});
    communicator_.run_agreed([&] {
      if (source_.rows->rows() != source_.rows->cols())
        throw Error(ErrorKind::usage, fmt::format("a solver needs a square matrix; {} is {} × {}", source_.rows->name(),
                                                  source_.rows->rows(), source_.rows->cols()));
      require_rows_for_files(options_.output, options_.files, source_.rows->rows());
    });
    describe_on_all_ranks(VectorFile::hdf5_input(options_.b, "b"), communicator_);
    describe_on_all_ranks(VectorFile::hdf5_input(options_.initial_guess, "x0"), communicator_);
    communicator_.run_agreed([&] {
      const std::int64_t rows = source_.rows->rows();
      b_source_ = open_vector(options_.b, "b", rows, options_.seed, columns());
      guess_source_ = open_vector(options_.initial_guess, "x0", rows, options_.seed + 1, columns());
    });
  }

  void load() {
    const KeptArrays reuse;
    LoadOptions load = options_.load;
    load.progress = options_.control.progress;
    matrix_ = std::make_unique<DistributedMatrix>(source_, context_, load);
    SolverOptions solver = options_.solver;
    solver.columns = columns();
    if (options_.picture) {
      const std::int64_t node_block_size = block_jacobi_size(*matrix_);
      communicator_.run_agreed([&] {
        if (communicator_.rank() == 0) draw_ = options_.picture(*source_.rows, node_block_size);
      });
    }
    if (may_use_coordinates(solver) && !options_.nodes.empty()) {
      matrix_->know_nodes(open_nodes(*matrix_, *source_.rows, options_.nodes));
      if (!options_.nodes.near_null_vectors.empty())
        solver.preconditioning.multigrid.near_null_vectors = find_near_null_vectors(*matrix_, *matrix_->nodes());
    }
    const Timer timer;
    solver_ = std::make_unique<Solver>(*matrix_, solver);
    const double set_up = timer.seconds() - matrix_->load_times().plan;
    keeps_rows_ = has_room_for_rows();
    may_advise_ = options_.advice && may_advise(solver) && keeps_rows_;
    if (!keeps_rows_) matrix_->drop_host_rows();
    add_load_phases(matrix_->load_times(), communicator_, report_.phases);
    report_.phases.push_back({"set up solver", over_ranks(std::max(0.0, set_up), communicator_)});
    phase("vectors", [&] {
      const ValueType type = sum_type(matrix_->type());
      b_.emplace(*matrix_, VectorLayout::rows, type, columns());
      x_.emplace(*matrix_, VectorLayout::rows, type, columns());
      b_->read(*b_source_, context_.stream());
      x_->read(*guess_source_, context_.stream());
    });
  }

  void solve_it() {
    phase("solve", [&] { report_.result = solver_->solve(*b_, *x_, options_.control); });
    if (report_.result.iterations == 0) return;
    report_.seconds_an_iteration = report_.result.seconds / static_cast<double>(report_.result.iterations);
    try {
      report_.parts =
          measure_iteration_parts(*solver_, report_.seconds_an_iteration, report_.result.iterations, report_.result.graph);
    } catch (const AgreedError& error) {  // all ranks are here, and x is as it was
      if (error.kind() != ErrorKind::resources) throw;
      report_.parts_failure = error.what();
    }
    for (const IterationPart& part : report_.parts) {
      if (part.name == "product") report_.product_seconds = part.seconds / part.count;
      if (part.name == "exchange") report_.exchange_seconds = part.seconds / part.count;
    }
  }

  /// Nothing on the host if the matrix of any rank may lie in caches.
  void measure_copy() {
    const bool in_memory =
        context_.device().backend == Backend::cuda || solver_->product().compulsory_bytes(0) > context_.bytes_to_copy() / 2;
    if (report_.parts.empty() || communicator_.all_reduce(in_memory ? 1 : 0, Reduction::min) == 0) return;
    report_.copy_bandwidth = over_ranks(communicator_.run_agreed([&] { return context_.copy_bandwidth(); }), communicator_);
  }

  /// Room for the host rows during the solve, vectors and more aside.
  bool has_room_for_rows() {
    const std::int64_t wanted = matrix_->host_bytes() + 8 * static_cast<std::int64_t>(solver_->product().y_bytes());
    return communicator_.all_reduce(share_of_host_memory() > wanted ? 1 : 0, Reduction::min) == 1;
  }

  void find_advice() {
    const Timer timer;
    report_.advice = advise(*solver_, *matrix_, *b_, *guess_source_, report_.result, options_.control);
    if (report_.advice.tried) report_.phases.push_back({"advice", over_ranks(timer.seconds(), communicator_)});
  }

  void write() {
    phase("write", [&] { x_->write(options_.output, "x", context_.stream(), options_.files); });
    report_.output = options_.output;
  }

  void draw() {
    const HostVector<double> x = x_->gather(context_.stream());
    communicator_.run_agreed([&] {
      if (communicator_.rank() == 0) draw_(x);
    });
  }

  void describe() {
    SolveReport& r = report_;
    describe_product(solver_->product(), source_, options_.load, r);
    r.solver = solver_->options().solver, r.solver_why = solver_->method_why();
    r.variant = solver_->variant();
    const auto& own = options_.solver.own_preconditioner;
    r.preconditioner = own ? own->name : solver_->options().preconditioner;
    r.preconditioner_why = solver_->preconditioner_why();
    r.preconditioner_note = solver_->preconditioner().describe();
    if (const MultigridReport* const found = solver_->preconditioner().multigrid(); found != nullptr) r.multigrid = *found;
    if (const DirectReport* const found = solver_->preconditioner().direct(); found != nullptr) r.direct = *found;
    r.near_null_vectors = options_.nodes.near_null_vectors;
    r.residual_norm = name(options_.solver.residual_norm);
    r.b = b_source_->name();
    r.initial_guess = guess_source_->name();
    r.settings = solver_->options();
    r.sums = solver_->summed_by();
    r.graph = r.result.graph;
    double held = static_cast<double>(matrix_->device_bytes() + solver_->device_bytes());
    held += 2 * static_cast<double>(solver_->product().y_bytes());
    r.device_bytes = over_ranks(held, communicator_);
    r.host_peak_bytes = over_ranks(static_cast<double>(peak_host_memory()), communicator_);
    measure_copy();  // its arrays are not of the solve's peak
  }

  MatrixSource source_;
  std::unique_ptr<DistributedMatrix> matrix_;
  std::unique_ptr<Solver> solver_;
  std::unique_ptr<VectorSource> b_source_, guess_source_;
  std::optional<DistributedVector> b_, x_;
  std::function<void(const HostVector<double>&)> draw_;  ///< of rank 0
  bool keeps_rows_ = false;  ///< of the matrix, for advice, the residual of a matrix in f32, and what rounding errors allow
  bool may_advise_ = false;
};

}  // namespace

SolveReport solve(Communicator& communicator, const SolveOptions& options) {
  Context context(communicator, options.backend, options.threads);
  return solve(context, options);
}

SolveReport solve(Context& context, const SolveOptions& options) {
  const ContextScope scope(context);
  return SolveRun(context, options)();
}

}  // namespace shardmat
