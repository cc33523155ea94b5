#include "runtime/run/solve_forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/text.h"
#include "partition/source/partitioner.h"
#include "partition/source/row_source.h"
#include "runtime/matrix/load_part.h"
#include "runtime/run/report_parts.h"
#include "runtime/solvers/loop/method.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/method_choice.h"
#include "runtime/solvers/method_requirements.h"
#include "runtime/source/matrix_source.h"
#include "runtime/source/row_lengths.h"

namespace shardmat {
namespace {

// Rules of thumb. A test compares their sums with what solves take.
constexpr std::int64_t kIndexBytes = 4, kPackedIndexBytes = 3;  ///< of a block of a node; of an entry, on average of formats
/// Nonzeros of all levels over those of the matrix: 1 and these for each nonzero of a row.
constexpr double kCoarseNonzerosOfNodes = 14, kCoarseNonzeros = 5.4;
constexpr std::int64_t kAggregatesOfNode = 6;  ///< that a row of the smoothed prolongation reaches
constexpr std::int64_t kFactorBytesOfARow = 40;
constexpr std::int64_t kHierarchiesInSetUp = 3;  ///< memory of the products while levels are made

std::int64_t matrix_bytes(std::int64_t rows, std::int64_t nnz, std::int64_t node, std::int64_t value) {
  return nnz * value + (node > 1 ? nnz * kIndexBytes / (node * node) : nnz * kPackedIndexBytes) + rows / node * 8;
}

std::int64_t modes_of_nodes(std::int64_t node) { return node == 3 ? 6 : node == 2 ? 3 : node; }

std::int64_t multigrid_bytes(std::int64_t rows, std::int64_t nnz, std::int64_t node, const MultigridOptions& options) {
  const std::int64_t value = options.inner == ValueType::f64 ? 8 : 4;
  const double more = (node > 1 ? kCoarseNonzerosOfNodes : kCoarseNonzeros) * static_cast<double>(rows);
  const double levels = 1 + more / static_cast<double>(std::max<std::int64_t>(nnz, 1));
  const auto operators = static_cast<std::int64_t>(levels * static_cast<double>(matrix_bytes(rows, nnz, node, value)));
  const std::int64_t row_of_p = kAggregatesOfNode * (modes_of_nodes(node) * value + kIndexBytes / node);
  return operators + rows * (2 * row_of_p + 4 * value);  // P and its transpose; vectors and the smoother's blocks
}

/// A level of fill adds so many entries for each of the matrix, about: 3-D meshes.
constexpr double kFillOfALevel = 1;

std::int64_t factor_bytes(const SolveForecast& f, const PreconditionerOptions& options) {
  const std::int64_t asked = options.node_block_size,
                     node = asked > 0               ? asked
                            : f.node_block_size > 6 ? 1
                                                    : f.node_block_size,
                     value = options.multigrid.inner == ValueType::f64 ? 8 : 4;
  const FactorOptions& factor = options.factor;
  const double fill = factor.drop_tolerance > 0 ? std::max(1.0, factor.fill) : 1 + kFillOfALevel * factor.levels;
  const auto entries = static_cast<std::int64_t>(fill * static_cast<double>(f.most_nnz));
  return entries * value + entries / (node * node) * kIndexBytes +
         f.most_rows * (kFactorBytesOfARow / node + 8 * f.right_hand_sides);
}

std::int64_t preconditioner_bytes(const SolveForecast& f, const PreconditionerOptions& options, std::int64_t vector) {
  // The blocks of field_split together are as large as a hierarchy of the whole matrix, or smaller.
  if (f.preconditioner == "multigrid" || f.preconditioner == "field_split")
    return multigrid_bytes(f.most_rows, f.most_nnz, f.node_block_size, options.multigrid);
  if (f.preconditioner == "ilu" || f.preconditioner == "ic") return factor_bytes(f, options);
  if (f.preconditioner == "block_jacobi") return f.node_block_size * vector / f.right_hand_sides;
  if (f.preconditioner == "jacobi") return vector / f.right_hand_sides;
  return f.preconditioner == "chebyshev" ? 3 * vector : 0;
}

/// What is assumed in place of "auto".
void assume_solver(const SolverOptions& given, SolveForecast& f) {
  const SolverOptions options = paired(given);
  f.solver = options.solver, f.preconditioner = options.preconditioner;
  if (f.solver == kAutomaticMethod)
    f.solver = "cg", f.solver_why = "assumed, as if the matrix were symmetric and positive definite: its values choose";
  if (f.preconditioner != kAutomaticPreconditioner) return;
  f.preconditioner = f.rows >= kFewRowsForMultigrid ? "multigrid" : "block_jacobi";
  f.preconditioner_why = "assumed from the number of rows: values choose";
}

/// Rows and nonzeros of the heaviest rank.
void find_parts(const MatrixSource& source, const SolveOptions& options, Communicator& ranks, SolveForecast& f) {
  f.node_block_size = node_block_size_of(source, ranks, options.load.node_block_size);
  const auto shares = even_starts(f.rows, ranks.size());
  const auto rank = static_cast<std::size_t>(ranks.rank());
  const auto lengths = ranks.run_agreed([&] { return source.rows->row_lengths(shares[rank], shares[rank + 1]); });
  const auto starts = divide_rows(options.load.method, lengths, shares, ranks, f.node_block_size);
  const HostVector<std::int64_t> own = moved_rows(lengths, shares, starts, ranks);
  const std::int64_t nnz = std::accumulate(own.begin(), own.end(), std::int64_t{0});
  f.nnz = ranks.all_reduce(nnz, Reduction::sum);
  f.most_nnz = ranks.all_reduce(nnz, Reduction::max);
  f.most_rows = ranks.all_reduce(starts[rank + 1] - starts[rank], Reduction::max);
}

}  // namespace

std::int64_t SolveForecast::peak() const { return process_bytes + held() + setup_bytes; }

SolveForecast forecast_solve(Communicator& communicator, const SolveOptions& options) {
  const SolverOptions& solver = options.solver;
  const std::int64_t process_bytes = communicator.all_reduce(std::int64_t{peak_host_memory()}, Reduction::max);
  communicator.run_agreed([&] {
    if (solver.solver != kAutomaticMethod) find_method(solver.solver);
    if (solver.preconditioner != kAutomaticPreconditioner) find_preconditioner(solver.preconditioner);
  });
  const MatrixSource source = open_matrix(options.matrix, communicator,
                                          {options.allow_nonfinite, options.load.method, options.control.progress, false,
                                           options.choices, false, options.load.node_block_size});
  communicator.run_agreed([&] {
    if (source.rows->rows() != source.rows->cols())
      throw Error(ErrorKind::usage, fmt::format("a solver needs a square matrix; {} is {} × {}", source.rows->name(),
                                                source.rows->rows(), source.rows->cols()));
  });
  SolveForecast f;
  f.process_bytes = process_bytes;
  f.matrix = source.rows->name(), f.type = name(options.load.type), f.rows = source.rows->rows();
  f.ranks = communicator.size(), f.right_hand_sides = options.load.right_hand_sides;
  find_parts(source, options, communicator, f);
  place_ranks(communicator, options.backend);  // refuses a backend that is not here
  assume_solver(solver, f);
  const auto value = static_cast<std::int64_t>(size_of(options.load.type));
  const std::int64_t vector =
      f.most_rows * f.right_hand_sides * static_cast<std::int64_t>(size_of(sum_type(options.load.type)));
  const MethodEntry& method = find_method(f.solver);
  f.vectors = method.vectors + (method.basis != nullptr ? method.basis(solver, f.rows) : 0) + 2;
  f.matrix_bytes = matrix_bytes(f.most_rows, f.most_nnz, f.node_block_size, value);
  f.vector_bytes = (f.vectors + 1) * vector;  // the product has an x of its own
  f.preconditioner_bytes = preconditioner_bytes(f, solver.preconditioning, vector);
  f.setup_bytes = f.most_nnz * (value + kIndexBytes) + 8 * f.most_rows;
  if (f.preconditioner == "ilu" || f.preconditioner == "ic") f.setup_bytes += 2 * f.preconditioner_bytes + 12 * f.most_nnz;
  if (f.preconditioner == "multigrid" || f.preconditioner == "field_split")
    f.setup_bytes += kHierarchiesInSetUp * f.preconditioner_bytes;
  f.available_bytes = communicator.all_reduce(share_of_host_memory(), Reduction::min);
  return f;
}

std::string to_text(const SolveForecast& f) {
  using reporting::Table;
  const auto bytes = [](std::int64_t count) { return human_bytes(static_cast<double>(count)); };
  const auto why = [](const std::string& text) { return text.empty() ? "" : fmt::format(" ({})", text); };
  Table t;
  t.section("Forecast of " + f.matrix + "; nothing was solved");
  t.row("shape", fmt::format("{} rows, {} nonzeros, {}", human_count(f.rows), human_count(f.nnz), f.type));
  t.row("ranks",
        fmt::format("{}, of at most {} rows and {} nonzeros", f.ranks, human_count(f.most_rows), human_count(f.most_nnz)));
  t.row("node block", fmt::format("{}", f.node_block_size));
  t.row("solver", f.solver + why(f.solver_why));
  t.row("preconditioner", f.preconditioner + why(f.preconditioner_why));
  t.section("Memory of a rank, estimated");
  t.row("matrix", bytes(f.matrix_bytes));
  const std::string columns = f.right_hand_sides > 1 ? fmt::format(" of {} columns", f.right_hand_sides) : "";
  t.row("vectors", fmt::format("{}: {}{}, b and x among them", bytes(f.vector_bytes), f.vectors, columns));
  t.row("preconditioner", f.preconditioner == "direct" ? "not foretold, and not counted: the ordering decides how many "
                                                         "nonzeros the factors have; memory is checked before they are made"
                                                       : bytes(f.preconditioner_bytes));
  t.row("together", bytes(f.held()));
  t.row("peak", fmt::format("{} of the process on the host, while the solver is set up; {} are available to a rank now",
                            bytes(f.peak()), bytes(f.available_bytes)));
  return t.text();
}

std::string to_json(const SolveForecast& f) {
  nlohmann::ordered_json j{
      {"dry_run", true},
      {"matrix",
       {{"name", f.matrix}, {"rows", f.rows}, {"nnz", f.nnz}, {"type", f.type}, {"node_block_size", f.node_block_size}}},
      {"right_hand_sides", f.right_hand_sides},
      {"ranks", {{"count", f.ranks}, {"most_rows", f.most_rows}, {"most_nnz", f.most_nnz}}},
      {"solver", {{"name", f.solver}, {"preconditioner", f.preconditioner}}},
      {"estimated_bytes_a_rank",
       {{"matrix", f.matrix_bytes},
        {"vectors", f.vector_bytes},
        {"preconditioner", f.preconditioner_bytes},
        {"together", f.held()},
        {"host_peak", f.peak()}}},
      {"host_available_bytes", f.available_bytes}};
  if (!f.solver_why.empty()) j["solver"]["why"] = f.solver_why;
  if (!f.preconditioner_why.empty()) j["solver"]["preconditioner_why"] = f.preconditioner_why;
  return j.dump(2) + "\n";
}

}  // namespace shardmat
