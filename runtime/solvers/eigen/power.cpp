#include "runtime/solvers/eigen/power_step.h"

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <tuple>

#include "comm/communicator.h"
#include "comm/same_on_all_ranks.h"
#include "kernels/base/error.h"
#include "kernels/base/timer.h"
#include "runtime/context/context.h"
#include "runtime/context/context_scope.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/solvers/eigen/eigen_matrix.h"
#include "runtime/solvers/eigen/eigenpairs.h"
#include "runtime/solvers/loop/random_entries.h"
#include "runtime/solvers/loop/square_underflow.h"
#include "runtime/solvers/loop/stop_vote.h"

namespace shardmat {

PowerStep::PowerStep(const Product& product)
    : product_(product), sum_(product.matrix().context().exchange_context(product.matrix().type(), 1), 2) {
  Context& context = product.matrix().context();
  context.communicator().run_agreed([&] {
    products_.emplace(context.device());
    values_ = Buffer(context.device(), 2 * sizeof(double));
  });
}

void PowerStep::add(const void* x, const void* y, Stream& stream) {
  const DistributedMatrix& matrix = product_.matrix();
  products_->compute(matrix.type(), matrix.local_rows(), x, y, values_.as<double>(), stream);
  sum_(values_.as<double>(), stream);
}

std::pair<double, double> PowerStep::dots(const void* x, const void* y, Stream& stream) {
  add(x, y, stream);
  product_.wait(stream);
  double values[2];
  copy_to_host(values, values_.data(), sizeof values, stream);
  return {values[0], values[1]};
}

void PowerStep::normalise(const void* y, void* x, Stream& stream) {
  const DistributedMatrix& matrix = product_.matrix();
  add(y, y, stream);
  shardmat::normalise(matrix.type(), matrix.local_rows(), y, values_.as<double>() + 1, x, stream);
}

std::pair<double, double> PowerStep::eigenvalue(const void* x, void* y, Stream& stream) {
  const DistributedMatrix& matrix = product_.matrix();
  const auto [xy, xx] = dots(y, x, stream);  // in f32 xᵀx is 1 up to rounding only
  const double value = xy / xx;
  combine(matrix.type(), matrix.local_rows(), 1, {-value}, x, {1}, y, stream);
  return {value, std::sqrt(dots(y, y, stream).first)};
}

PowerMethod::PowerMethod(DistributedMatrix& matrix, const PowerOptions& options) : matrix_(matrix), options_(options) {
  Context& context = matrix.context();
  const ContextScope scope(context);
  context.communicator().run_agreed([&] {
    require_eigen_matrix("the power method", matrix);
    if (!(options.tolerance >= 0 && std::isfinite(options.tolerance)))
      throw Error(ErrorKind::usage, "the tolerance must be 0 or more, and finite", "tolerance");
    if (options.max_iterations < 1) throw Error(ErrorKind::usage, "the most iterations must be 1 or more", "max_iterations");
  });
  require_same_on_all_ranks(context.communicator(),
                            {given_number("tolerance", options.tolerance),
                             given_number("max_iterations", static_cast<double>(options.max_iterations)),
                             given_number("seed", static_cast<double>(options.seed))});
  options_.product.columns = 1;
  product_ = matrix.product(options_.product);
  step_ = std::make_unique<PowerStep>(*product_);
  y_.emplace(matrix, VectorLayout::rows, sum_type(matrix.type()));
  r_.emplace(matrix, VectorLayout::rows, sum_type(matrix.type()));
}

PowerMethod::~PowerMethod() = default;

std::string_view PowerMethod::summed_by() const { return step_->summed_by(); }

std::int64_t PowerMethod::device_bytes() const {
  return product_->device_bytes() + 2 * static_cast<std::int64_t>(product_->y_bytes());
}

double PowerMethod::length(const DistributedVector& x, Stream& stream) {
  const double squares = step_->dots(x.view().data, x.view().data, stream).first;
  // Without the squares of the largest entries, or of all, the length says nothing.
  const bool lost = squares_underflow(x, std::span(&squares, 1), *product_, stream);
  matrix_.context().communicator().run_agreed([&] {
    if (!std::isfinite(squares) || lost)
      throw Error(
          ErrorKind::input,
          fmt::format("a product with the matrix has the squared length {:g}, beyond what can be computed with; scale "
                      "the matrix so that its values are near 1",
                      squares));
  });
  return std::sqrt(squares);
}

EigenResult PowerMethod::run(DistributedVector& x, const EigenMonitor& monitor, const std::function<bool()>& stop) {
  Context& context = matrix_.context();
  const ContextScope scope(context);
  Stream& stream = context.stream();
  x.require_like(*matrix_.y_rows(), 1, sum_type(matrix_.type()), "the eigenvector");
  DistributedVector& y = *y_;
  const Timer timer;
  StopVote vote(context.communicator(), stop);
  EigenResult result;
  result.pairs.resize(1);
  Eigenpair& pair = result.pairs[0];
  fill_random(x, options_.seed, Entries::fractions, stream);
  length(x, stream);
  copy(x, y, stream);
  step_->normalise(y.view().data, x.view().data, stream);
  while (true) {
    product_->multiply(1, x.view(), 0, y.view(), stream);
    ++result.iterations;
    const double size = length(y, stream);
    copy(y, *r_, stream);
    std::tie(pair.value, pair.residual) = step_->eigenvalue(x.view().data, r_->view().data, stream);
    pair.converged = pair.residual <= options_.tolerance * std::abs(pair.value);
    result.norm = std::abs(pair.value);
    if (monitor) monitor(result.iterations, result.pairs);
    if (pair.converged || size == 0 || result.iterations == options_.max_iterations) break;
    result.interrupted = vote();
    if (result.interrupted) break;
    step_->normalise(y.view().data, x.view().data, stream);
  }
  product_->wait(stream);
  result.seconds = context.communicator().all_reduce(timer.seconds(), Reduction::max);
  return result;
}

}  // namespace shardmat
