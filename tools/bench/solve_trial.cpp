#include "tools/bench/solve_trial.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/base/timer.h"
#include "runtime/matrix/product.h"
#include "runtime/matrix/row_plan.h"
#include "tools/bench/peer_pairs.h"

namespace shardmat::tools {
namespace {

constexpr int kProducts = 11;

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
      block_size_(matrix_.unknowns_a_node(6)),
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

double SolveTrial::product_seconds() {
  const Product& product = solver_.product();
  const DistributedVector y(matrix_, VectorLayout::rows, ValueType::f64, b_.columns());
  std::vector<double> seconds;
  for (int i = 0; i <= kProducts; ++i) {
    const Timer timer;
    product.multiply_local(1, 0, y.view(), context_.stream());
    product.wait(context_.stream());
    if (i > 0) seconds.push_back(timer.seconds());  // the first one warms up
  }
  return median_of(seconds);
}

std::string SolveTrial::kernel() const { return solver_.product().row_plans().front().kernel(); }

}  // namespace shardmat::tools
