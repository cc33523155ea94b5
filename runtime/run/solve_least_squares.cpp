#include "runtime/run/solve_least_squares.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/text.h"
#include "partition/files/atomic_files.h"
#include "partition/source/row_source.h"
#include "partition/vectors/vector_file.h"
#include "runtime/base/break_on_error.h"
#include "runtime/context/context_scope.h"
#include "runtime/matrix/product.h"
#include "runtime/matrix/vectors.h"
#include "runtime/run/report_parts.h"
#include "runtime/run/reported_run.h"
#include "runtime/source/hdf5_on_ranks.h"
#include "runtime/source/matrix_source.h"

namespace shardmat {
namespace {

class LeastSquaresRun : ReportedRun<SolveOptions, LeastSquaresReport> {
 public:
  LeastSquaresRun(Context& context, const SolveOptions& options) : ReportedRun(context, options) {}

  LeastSquaresReport operator()() {
    return break_on_error(communicator_, [&] {
      communicator_.run_agreed([&] { require_possible(); });
      open();
      load();
      LeastSquaresOptions settings;
      settings.method = options_.solver.solver, settings.rtol = options_.solver.rtol;
      settings.max_iterations = options_.solver.max_iterations, settings.progress = options_.control.progress;
      phase("solve", [&] { report_.result = solve_least_squares(*matrix_, *b_, *x_, settings); });
      if (!options_.output.empty())
        phase("write", [&] { x_->write(options_.output, "x", context_.stream(), options_.files); });
      describe();
      return std::move(report_);
    });
  }

 private:
  void require_possible() const {
    const auto refuse = [&](const char* what, const char* setting) {
      throw Error(ErrorKind::usage, fmt::format("{} {}", options_.solver.solver, what), setting);
    };
    if (options_.load.right_hand_sides != 1) refuse("solves for one right-hand side", "right_hand_sides");
    const std::string& preconditioner = options_.solver.preconditioner;
    if (preconditioner != "auto" && preconditioner != "none") refuse("takes no preconditioner", "preconditioner");
    if (options_.load.plan.storage == StoredEntries::half)
      refuse("is for matrices of any shape; take cg or minres for one in symmetric storage", "solver");
    if (options_.control.true_residuals || options_.control.monitor)
      refuse("tells its residuals in the report, and not while it runs", "monitor");
    if (options_.picture) refuse("draws no picture of the nodes", "vtk");
    if (options_.output.empty()) return;
    check_vector_suffix(options_.output);
    if (communicator_.rank() == 0) check_vector_writable(options_.output, 1, options_.files);  // it writes
  }

  void open() {
    source_ = open_matrix(options_.matrix, communicator_,
                          {options_.allow_nonfinite, options_.load.method, options_.control.progress, false,
                           options_.choices, false, options_.load.node_block_size});
    communicator_.run_agreed([&] { require_rows_for_files(options_.output, options_.files, source_.rows->cols()); });
    describe_on_all_ranks(VectorFile::hdf5_input(options_.b, "b"), communicator_);
    describe_on_all_ranks(VectorFile::hdf5_input(options_.initial_guess, "x0"), communicator_);
    communicator_.run_agreed([&] {
      b_source_ = open_vector(options_.b, "b", source_.rows->rows(), options_.seed);
      guess_source_ = open_vector(options_.initial_guess, "x0", source_.rows->cols(), options_.seed + 1);
    });
  }

  void load() {
    LoadOptions load = options_.load;
    load.progress = options_.control.progress;
    matrix_ = std::make_unique<DistributedMatrix>(source_, context_, load);
    product_ = matrix_->product(1);
    report_.transpose = matrix_->transposed_product(1)->kernel();  // makes the map, if there is one
    matrix_->drop_host_rows();
    add_load_phases(matrix_->load_times(), communicator_, report_.phases);
    phase("vectors", [&] {
      b_.emplace(*matrix_, VectorLayout::rows, matrix_->type());
      x_.emplace(*matrix_, VectorLayout::columns, matrix_->type());
      b_->read(*b_source_, context_.stream());
      x_->read(*guess_source_, context_.stream());
    });
  }

  void describe() {
    LeastSquaresReport& r = report_;
    describe_product(*product_, source_, options_.load, r);
    r.solver = options_.solver.solver;
    r.rtol = options_.solver.rtol.value_or(default_rtol(matrix_->type()));
    r.b = b_source_->name(), r.initial_guess = guess_source_->name();
    r.output = options_.output;
    r.device_bytes = over_ranks(static_cast<double>(matrix_->device_bytes() + 2 * product_->device_bytes()), communicator_);
    r.host_peak_bytes = over_ranks(static_cast<double>(peak_host_memory()), communicator_);
  }

  MatrixSource source_;
  std::unique_ptr<DistributedMatrix> matrix_;
  std::unique_ptr<Product> product_;
  std::unique_ptr<VectorSource> b_source_, guess_source_;
  std::optional<DistributedVector> b_, x_;
};

std::string_view word_of(LeastSquaresEnd end) {
  switch (end) {
    case LeastSquaresEnd::solved:
      return "solved";
    case LeastSquaresEnd::least_squares:
      return "least_squares";
    case LeastSquaresEnd::rounding:
      return "rounding";
    default:
      return "max_iterations";
  }
}

}  // namespace

LeastSquaresReport solve_least_squares(Communicator& communicator, const SolveOptions& options) {
  Context context(communicator, options.backend, options.threads);
  const ContextScope scope(context);
  return LeastSquaresRun(context, options)();
}

std::string to_text(const LeastSquaresReport& r) {
  reporting::Table t;
  reporting::write_setup(t, r);
  t.row("transpose", r.transpose);
  reporting::write_phases(t, r.phases);
  t.section("Least squares");
  t.row("solver", fmt::format("{}, tolerance {:.3g}", r.solver, r.rtol));
  t.row("end", fmt::format("{}: {}", word_of(r.result.end), r.result.explanation()));
  t.row("iterations", fmt::format("{}{}, {}", r.result.iterations,
                                  r.result.restarts > 0 ? fmt::format(", {} restarts", r.result.restarts) : "",
                                  human_seconds(r.result.seconds)));
  t.row("|b - Ax|", fmt::format("{:.6e}; |b| = {:.6e}", r.result.residual, r.result.norm_of_b));
  t.row("|A'(b - Ax)|", fmt::format("{:.6e}; |A| about {:.6e}", r.result.normal_residual, r.result.norm_of_a));
  t.row("|x|", fmt::format("{:.6e}", r.result.norm_of_x));
  if (!r.output.empty()) t.row("written", r.output);
  return t.text();
}

std::string to_json(const LeastSquaresReport& r) {
  using reporting::number;
  nlohmann::ordered_json history = nlohmann::ordered_json::array();
  for (const double norm : r.result.history) history.push_back(number(norm));
  nlohmann::ordered_json j{{"matrix", reporting::json_of_matrix(r)},
                           {"solver", r.solver},
                           {"rtol", r.rtol},
                           {"b", r.b},
                           {"initial_guess", r.initial_guess},
                           {"converged", r.result.converged()},
                           {"end", word_of(r.result.end)},
                           {"iterations", r.result.iterations},
                           {"restarts", r.result.restarts},
                           {"norm_of_b", number(r.result.norm_of_b)},
                           {"norm_of_x", number(r.result.norm_of_x)},
                           {"norm_of_a", number(r.result.norm_of_a)},
                           {"residual", number(r.result.residual)},
                           {"normal_residual", number(r.result.normal_residual)},
                           {"seconds", r.result.seconds},
                           {"history", history},
                           {"transpose", r.transpose},
                           {"partition", reporting::json_of_partition(r)},
                           {"backend", {{"name", r.backend}, {"why", r.backend_why}}},
                           {"ranks", reporting::json_of_ranks(r)},
                           {"threads_per_rank", r.threads_per_rank},
                           {"kernel", reporting::json_of_kernel(r)},
                           {"exchange", reporting::json_of_exchange(r)},
                           {"phases_s", reporting::json_of_phases(r.phases)},
                           {"device_bytes", reporting::json(r.device_bytes)},
                           {"host_peak_bytes", reporting::json(r.host_peak_bytes)}};
  if (!r.output.empty()) j["output"] = r.output;
  return j.dump(2) + "\n";
}

}  // namespace shardmat
