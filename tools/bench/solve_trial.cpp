#include "tools/bench/solve_trial.h"

#include "runtime/matrix/product.h"
#include "runtime/matrix/row_plan.h"
#include "runtime/run/time_product.h"
#include "runtime/source/matrix_source.h"

namespace shardmat::tools {
namespace {

LoadOptions load_options(const SolveCase& one, const std::string& kernel) {
  LoadOptions options;
  options.type = ValueType::f64;
  options.right_hand_sides = one.columns;
  options.plan.kernel = kernel;
  options.plan.products = 1000;  // as `solve`
  return options;
}

SolverOptions solver_options(const SolveCase& one, const SolveLimits& limits) {
  SolverOptions options;
  options.solver = one.solver, options.preconditioner = one.preconditioner;
  options.rtol = limits.rtol, options.max_iterations = limits.most;
  options.columns = one.columns;
  return options;
}

}  // namespace

SolveTrial::SolveTrial(const SolveCase& one, const std::string& kernel, const SolveLimits& limits, Context& context)
    : context_(context),
      matrix_(open_matrix(one.matrix, context), context, load_options(one, kernel)),
      node_block_size_(block_jacobi_size(matrix_)),
      solver_(matrix_, solver_options(one, limits)),
      b_(matrix_, VectorLayout::rows, ValueType::f64, one.columns),
      x_(matrix_, VectorLayout::rows, ValueType::f64, one.columns) {
  matrix_.drop_host_rows();
  b_.fill(1, context.stream());
}

SolveResult SolveTrial::solve() {
  x_.fill(0, context_.stream());
  context_.stream().synchronize();
  return solver_.solve(b_, x_);
}

double SolveTrial::product_seconds() { return time_product(solver_.product(), context_.stream()).product; }

bool SolveTrial::sums_dot() const { return solver_.product().dot_parts() > 0; }

std::string SolveTrial::kernel() const { return solver_.product().row_plans().front().kernel(); }

}  // namespace shardmat::tools
