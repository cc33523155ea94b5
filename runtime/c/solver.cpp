#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "runtime/c/handles.h"
#include "runtime/shared_gpu/own_nodes.h"
#include "runtime/solvers/loop/null_vectors.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/multigrid/hierarchy.h"
#include "runtime/solvers/solver_settings.h"

struct shardmat_solver {
  shardmat::c::Tag<shardmat::c::Kind::solver> tag;
  std::shared_ptr<shardmat::c::MatrixState> matrix;
  shardmat::c::Monitor monitor;
  int (*watch)(void*, std::int64_t, const shardmat_dense*) = nullptr;
  shardmat::SolveResult last;
  // What works with the matrix goes first.
  std::optional<shardmat::GroupSolver> solver;
};

namespace shardmat::c {
namespace {

/// Null: there are none.
std::shared_ptr<const NearNullVectors> vectors_of(const double* values, std::int32_t count, const char* name, int most,
                                                  std::int64_t own_rows) {
  require(count >= 0 && count <= most, fmt::format("the number of {} must be 1 to {}, or 0: none", name, most).c_str());
  require(count != 0 || values == nullptr,
          fmt::format("{} are given, but their number is 0; set how many there are", name).c_str());
  require(count == 0 || own_rows == 0 || values != nullptr, fmt::format("{} is NULL", name).c_str());
  return count == 0 ? nullptr
                    : std::make_shared<const NearNullVectors>(NearNullVectors{count, {values, values + own_rows * count}});
}

/// The caller's coordinates and vectors are copied: a refresh wants them again.
void take_nodes(const shardmat_solver_options& given, const GroupMatrix& matrix, SolverOptions& options) {
  const std::int64_t own_rows = matrix.own_rows();
  MultigridOptions& to = options.preconditioning.multigrid;
  require(given.dimensions == 0 || NodeCoordinates::allows(given.dimensions),
          "dimensions must be 2 or 3, 12 with the axes of each node, or 0: none");
  require(given.dimensions != 0 || given.coordinates == nullptr,
          "coordinates are given, but dimensions is 0; set 2, 3 or 12");
  require(given.dimensions == 0 || given.nodes == 0 || given.coordinates != nullptr, "coordinates is NULL");
  if (given.dimensions != 0) require_nodes_of_rows(given.nodes, matrix);
  if (given.dimensions != 0)
    to.coordinates = std::make_shared<const NodeCoordinates>(
        NodeCoordinates{given.dimensions, {given.coordinates, given.coordinates + given.nodes * given.dimensions}});
  to.near_null_vectors =
      vectors_of(given.near_null_vectors, given.near_null_count, "near_null_vectors", NearNullVectors::kMost, own_rows);
  options.null_vectors = vectors_of(given.null_vectors, given.null_count, "null_vectors", NullVectors::kMost, own_rows);
}

shardmat_dense of_program(const ConstDense& view) {
  return {const_cast<void*>(view.data),
          view.rows,
          view.columns,
          view.columns,
          0,
          view.type == ValueType::f32 ? SHARDMAT_F32 : SHARDMAT_F64,
          0};
}

OwnPreconditioner preconditioner_of(const shardmat_solver_options& given) {
  OwnPreconditioner made =
      host_preconditioner([apply = given.apply, user = given.apply_user](const ConstDense& r, const Dense& z) {
        const shardmat_dense from = of_program(r), to = of_program(z);
        std::array<char, 257> problem{};
        const int status = apply(user, &from, &to, problem.data());
        if (status == SHARDMAT_OK) return;
        problem.back() = 0;
        const bool known = status >= SHARDMAT_INTERNAL && status <= SHARDMAT_VERIFICATION && status != SHARDMAT_RANK_LOST;
        throw Error(known ? static_cast<ErrorKind>(status) : ErrorKind::internal,
                    problem[0] != 0 ? problem.data() : fmt::format("the preconditioner of the program returned {}", status));
      });
  made.linear = given.apply_is_linear != 0;
  return made;
}

SolverOptions solver_options(const shardmat_solver_options& given) {
  require(std::isfinite(given.rtol), "rtol is not finite");
  require(given.columns >= 0, "the number of columns is negative");
  SolverOptions options;
  options.solver = text(given.solver, options.solver);
  options.preconditioner = text(given.preconditioner, options.preconditioner);
  if (given.null_space != nullptr) options.null_space = parse_null_space(given.null_space);
  if (given.residual_norm != nullptr) options.residual_norm = parse_residual_norm(given.residual_norm);
  if (given.variant != nullptr) options.variant = parse_cg_variant(given.variant);
  if (given.penalty_rows != nullptr) options.penalty_rows = parse_penalty_rows(given.penalty_rows);
  if (given.rtol != 0) options.rtol = std::max(0.0, given.rtol);
  options.atol = given.atol;
  if (given.divergence_tolerance != 0) options.divergence_tolerance = given.divergence_tolerance;
  if (given.max_iterations != 0) options.max_iterations = given.max_iterations;
  if (given.restart != 0) options.restart = given.restart;
  options.preconditioning.node_block_size = given.node_block_size;
  if (given.degree != 0) options.preconditioning.degree = given.degree;
  options.assume_symmetric = given.assume_symmetric != 0;
  if (given.columns != 0) options.columns = given.columns;
  if (given.apply != nullptr) options.own_preconditioner = preconditioner_of(given);
  if (given.settings != nullptr) take_settings(given.settings, options);
  return options;
}

/// Of the caller's options: what all ranks must give alike.
std::vector<Given> listed(const shardmat_solver_options& given) {
  const SolverOptions options = solver_options(given);
  std::vector<Given> all = all_settings(options);
  all.push_back(option("columns", static_cast<double>(options.columns)));
  all.push_back(option("apply", given.apply != nullptr ? 1 : 0));
  all.push_back(option("watch", given.watch != nullptr ? 1 : 0));
  all.push_back(option("apply_is_linear", given.apply_is_linear != 0 ? 1 : 0));
  return all;
}

SolveControl control(shardmat_solver& solver) {
  SolveControl made;
  Monitor& monitor = solver.monitor;
  if (solver.watch != nullptr) {
    made.true_residuals = true;
    made.watch = [&solver, memory = HostVector<char>()](std::int64_t iterations, const DistributedVector& x) mutable {
      memory.resize(static_cast<std::size_t>(x.own_rows() * x.columns()) * size_of(x.type()));
      const Dense own{memory.data(), x.own_rows(), x.columns(), x.columns(), DenseOrder::row_major, x.type(), Device{}};
      x.own(own, x.context().stream());
      const shardmat_dense view = of_program(own);
      if (solver.watch(solver.monitor.user, iterations, &view) != 0) solver.monitor.ended = true;
    };
  }
  if (monitor.call == nullptr && solver.watch == nullptr) return made;
  made.monitor = [&](std::int64_t iterations, const std::vector<double>& norms, const std::vector<double>&) {
    monitor(iterations, norms);
  };
  made.stop = [&] { return monitor.ended; };
  return made;
}

void write_results(const SolveResult& result, shardmat_solve_result* to) {
  if (to == nullptr) return;
  const std::size_t stride = to->size;
  auto* place = reinterpret_cast<char*>(to);
  for (const SolvedColumn& column : result.columns) {
    auto* const one = reinterpret_cast<shardmat_solve_result*>(place);
    one->size = stride;
    write_struct(one,
                 {0, converged(column.reason) ? 1 : 0, column.iterations, column.residual, column.true_residual,
                  column.norm_of_b, result.seconds, name(column.reason).data(), result.explanation(column).data(),
                  column.removed_from_b, result.penalty_rows, result.penalty_ratio, column.floor, column.backward_error,
                  column.spectrum ? column.spectrum->condition() : 0, column.error_bound.value_or(0), column.normal_residual,
                  column.breakdowns},
                 "there is no shardmat_solve_result with its size set");
    place += stride;
  }
}

std::unique_ptr<shardmat_solver> make(const std::shared_ptr<MatrixState>& matrix, const shardmat_solver_options* given) {
  auto made = std::make_unique<shardmat_solver>();
  made->matrix = matrix;
  require_same(*matrix->context, [&] { return listed(read_struct(given, "shardmat_solver_options")); });
  made->solver.emplace(*matrix->matrix, [&] {
    const shardmat_solver_options known = read_struct(given, "shardmat_solver_options");
    made->monitor.call = known.monitor;
    made->monitor.user = known.user;
    made->watch = known.watch;
    SolverOptions options = solver_options(known);
    take_nodes(known, *matrix->matrix, options);
    return options;
  });
  return made;
}

bool solve(shardmat_solver& solver, const std::function<Dense()>& b, const std::function<Dense()>& x,
           shardmat_solve_result* results) {
  solver.monitor.ended = false;
  solver.last = solver.solver->solve(
      [&] {
        require(results == nullptr || results->size >= sizeof results->size, "shardmat_solve_result.size is not set");
        return b();
      },
      x, control(solver));
  write_results(solver.last, results);
  return solver.last.converged();
}

/// Null: there is no such level with a next one, or the context has feeders.
const multigrid::NodeRows* prolongation(const shardmat_solver& solver, std::int64_t level) {
  if (solver.matrix->context->context.has_feeders()) return nullptr;
  const multigrid::Hierarchy* const of = solver.solver->solver()->preconditioner().hierarchy();
  if (of == nullptr || level < 0 || level + 1 >= std::ssize(of->report().levels)) return nullptr;
  return &of->prolongation(level);
}

/// SHARDMAT_NOT_CONVERGED in place of SHARDMAT_OK.
int status_of(int status, bool converged, const shardmat_solver* solver) {
  if (status != SHARDMAT_OK || converged) return status;
  const auto& columns = solver->last.columns;
  const auto first =
      std::find_if(columns.begin(), columns.end(), [](const auto& c) { return !shardmat::converged(c.reason); });
  return keep_message(SHARDMAT_NOT_CONVERGED, solver->last.explanation(*first).data());
}

}  // namespace
}  // namespace shardmat::c

using namespace shardmat;
using namespace shardmat::c;

const char* shardmat_solver_settings(void) {
  static const std::string text = describe_settings();
  return text.c_str();
}

int shardmat_solver_create(shardmat_matrix* matrix, const shardmat_solver_options* options, shardmat_solver** solver) {
  if (solver != nullptr) *solver = nullptr;
  if (!is_handle(matrix)) return no_handle(matrix, "the matrix");
  if (solver == nullptr) return c_status([] { require(false, "there is nowhere to put the solver"); });
  return in_context(matrix->state->context, [&] { *solver = make(matrix->state, options).release(); });
}

void shardmat_solver_destroy(shardmat_solver* solver) {
  if (is_handle(solver)) destroy(solver, solver->matrix->context);
}

int shardmat_solver_refresh(shardmat_solver* solver) {
  if (!is_handle(solver)) return no_handle(solver, "the solver");
  return in_context(solver->matrix->context, [&] { solver->solver->refresh(); });
}

int shardmat_solver_solve(shardmat_solver* solver, const shardmat_dense* b, const shardmat_dense* x,
                          shardmat_solve_result* results) {
  if (!is_handle(solver)) return no_handle(solver, "the solver");
  bool converged = true;
  const int status = in_context(solver->matrix->context, [&] {
    ContextState& context = *solver->matrix->context;
    converged = solve(
        *solver, [&] { return dense(b, "b", context); }, [&] { return dense(x, "x", context); }, results);
  });
  return status_of(status, converged, solver);
}

int shardmat_solver_precondition(shardmat_solver* solver, const shardmat_dense* r, const shardmat_dense* z) {
  if (!is_handle(solver)) return no_handle(solver, "the solver");
  return in_context(solver->matrix->context, [&] {
    ContextState& context = *solver->matrix->context;
    solver->solver->precondition([&] { return dense(r, "r", context); }, [&] { return dense(z, "z", context); });
  });
}

int shardmat_solver_history(shardmat_solver* solver, int64_t column, double* norms, int64_t capacity, int64_t* count) {
  if (!is_handle(solver)) return no_handle(solver, "the solver");
  return in_context(solver->matrix->context, [&] {
    require(count != nullptr && capacity >= 0 && (norms != nullptr || capacity == 0), "there is nowhere to put the norms");
    require(column >= 0 && column < std::ssize(solver->last.columns), "there is no such column of a solve");
    const std::vector<double>& history = solver->last.columns[static_cast<std::size_t>(column)].history;
    std::copy_n(history.begin(), std::min(capacity, std::ssize(history)), norms);
    *count = std::ssize(history);
  });
}

int shardmat_solver_get_multigrid(shardmat_solver* solver, shardmat_multigrid_info* info) {
  if (!is_handle(solver)) return no_handle(solver, "the solver");
  return in_context(solver->matrix->context, [&] {
    shardmat_multigrid_info found{};
    if (const MultigridReport* const report = solver->solver->multigrid(); report != nullptr)
      found = {0,
               std::ssize(report->levels),
               report->operator_complexity,
               report->seconds,
               report->bytes,
               report->modes.c_str(),
               report->cycle.c_str(),
               report->smoother.c_str()};
    write_struct(info, found, "there is no shardmat_multigrid_info with its size set");
  });
}

int shardmat_solver_get_level(shardmat_solver* solver, int64_t level, shardmat_multigrid_level* info) {
  if (!is_handle(solver)) return no_handle(solver, "the solver");
  return in_context(solver->matrix->context, [&] {
    const MultigridReport* const report = solver->solver->multigrid();
    require(report != nullptr && level >= 0 && level < std::ssize(report->levels), "there is no such level of multigrid");
    const LevelReport& found = report->levels[static_cast<std::size_t>(level)];
    const multigrid::NodeRows* const p = prolongation(*solver, level);
    write_struct(info,
                 {0, found.unknowns, found.nonzeros, found.radius, p == nullptr ? 0 : p->count() * p->row_size,
                  p == nullptr ? 0 : p->blocks() * p->block_entries()},
                 "there is no shardmat_multigrid_level with its size set");
  });
}

int shardmat_solver_get_prolongation(shardmat_solver* solver, int64_t level, int64_t* row_ptr, int64_t* columns,
                                     double* values) {
  if (!is_handle(solver)) return no_handle(solver, "the solver");
  return in_context(solver->matrix->context, [&] {
    const multigrid::NodeRows* const p = prolongation(*solver, level);
    require(p != nullptr, "there is no prolongation to such a level of multigrid, or the context has feeders");
    require(row_ptr != nullptr && (p->blocks() == 0 || (columns != nullptr && values != nullptr)),
            "there is nowhere to put the prolongation");
    row_ptr[0] = 0;
    for (std::int64_t i = 0; i < p->count(); ++i)
      for (int r = 0; r < p->row_size; ++r) {
        for (std::int64_t k = p->start[at(i)]; k < p->start[at(i + 1)]; ++k)
          for (int c = 0; c < p->col_size; ++c) {
            *columns++ = p->cols->global(p->column[at(k)]) * p->col_size + c;
            *values++ = p->block(k)[r * p->col_size + c];
          }
        const std::int64_t entries = p->start[at(i + 1)] - p->start[at(i)];
        row_ptr[1] = row_ptr[0] + entries * p->col_size, ++row_ptr;
      }
  });
}

int shardmat_solve(shardmat_matrix* matrix, const shardmat_solver_options* options, const void* b, void* x,
                   shardmat_solve_result* result) {
  if (!is_handle(matrix)) return no_handle(matrix, "the matrix");
  bool converged = true;
  std::unique_ptr<shardmat_solver> solver;
  const int status = in_context(matrix->state->context, [&] {
    solver = make(matrix->state, options);
    const GroupMatrix& of = *matrix->state->matrix;
    const Dense to{x, of.own_rows(), 1, 1, DenseOrder::row_major, sum_type(of.type()), Device{}};
    Dense from = to;
    from.data = const_cast<void*>(b);
    const auto check_and_give = [&] {
      require((b != nullptr && x != nullptr) || of.own_rows() == 0, "b or x is NULL");
      require(solver->solver->options().columns == 1, "shardmat_solve() is for one column; use shardmat_solver_solve()");
      return from;
    };
    converged = solve(
        *solver, check_and_give, [&] { return to; }, result);
  });
  return status_of(status, converged, solver.get());
}
