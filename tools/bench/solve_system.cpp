#include "tools/bench/solve_system.h"

#include <algorithm>

#include "runtime/matrix/product.h"
#include "runtime/matrix/vectors.h"
#include "runtime/run/node_coordinates.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/multigrid/known_nodes.h"
#include "tools/bench/matrices.h"

namespace shardmat::tools {
namespace {

LoadOptions load_options() {
  LoadOptions options;
  options.type = ValueType::f64;
  options.plan.products = 1000;  // as `solve`
  options.values = Values::updatable;
  return options;
}

/// Of this rank's rows, in the order of the source.
std::vector<double> own_values(const RowSource& source, const DistributedMatrix& matrix) {
  const auto& starts = matrix.y_rows()->starts();
  const auto rank = static_cast<std::size_t>(matrix.context().communicator().rank());
  std::vector<double> values;
  for_each_row_slice(source, starts[rank], starts[rank + 1], [&](std::int64_t, const CsrView& rows) {
    values.insert(values.end(), rows.values.begin(), rows.values.begin() + rows.nnz());
  });
  return values;
}

}  // namespace

SolveSystem::SolveSystem(const std::string& matrix, const std::string& coordinates, Context& context)
    : context_(context),
      name_(matrix),
      coordinates_file_(coordinates),
      source_(open_matrix(matrix, context, {.keep_unknowns = is_mesh_file(coordinates)})),
      matrix_(source_, context, load_options()),
      node_size_(block_jacobi_size(matrix_)),
      coordinates_(find_node_coordinates(matrix_, *open_nodes(matrix_, *source_.rows, {coordinates, {}, {}}))),
      b_(matrix_, VectorLayout::rows, ValueType::f64),
      x_(matrix_, VectorLayout::rows, ValueType::f64) {
  values_ = context.communicator().run_agreed([&] { return own_values(*source_.rows, matrix_); });
  b_.fill(1, context.stream());
  matrix_.product();  // chooses the kernel and stores the rows before anything is timed
}

SystemNodes SolveSystem::nodes() const {
  SystemNodes nodes;
  nodes.size = node_size_;
  if (coordinates_ == nullptr || coordinates_->dimensions != node_size_) return nodes;  // then nobody makes rigid-body modes
  const std::int64_t count = matrix_.rows() / node_size_, dimensions = node_size_;
  const HostVector<double> original =
      open_node_files({coordinates_file_, {}, {}}, *source_.rows, node_size_)->coordinates(0, count);
  nodes.dimensions = dimensions;
  for (std::int64_t node = 0; node < count; ++node) {
    const std::int64_t row = node * node_size_;
    const std::int64_t from = order_.empty() ? node : order_[static_cast<std::size_t>(row)] / node_size_;
    const auto* place = original.data() + from * NodeFacts::kDimensions;
    nodes.coordinates.insert(nodes.coordinates.end(), place, place + dimensions);
  }
  return nodes;
}

void SolveSystem::share() {
  context_.communicator().run_agreed([&] {
    if (context_.communicator().rank() != 0) return;
    if (source_.rows->permuted()) order_ = source_.rows->permutation(0, matrix_.rows());
    const HostCsr matrix = load_matrix(name_, {});
    operands_ = std::make_unique<SharedOperands>(
        matrix.view(), ValueType::f64, RightHandSides{}, [](std::int64_t) { return 1.0; }, nodes());
  });
}

void SolveSystem::scale_values(double factor) {
  new_values_ = values_;
  for (double& value : new_values_) value *= factor;
}

void SolveSystem::take_values() {
  matrix_.update_values(new_values_, context_.stream());
  context_.stream().synchronize();
}

std::optional<double> SolveSystem::relative_residual(double factor) {
  Communicator& communicator = context_.communicator();
  if (communicator.all_reduce(operands_ != nullptr ? 1 : 0, Reduction::max) == 0) return std::nullopt;
  const HostVector<double> x = x_.gather(context_.stream());
  double residual = 0;
  if (communicator.rank() == 0) {
    HostVector<double> ordered;
    for (const std::int64_t row : order_) ordered.push_back(x[static_cast<std::size_t>(row)]);
    operands_->set_y(order_.empty() ? x : ordered);
    residual = operands_->relative_residual(factor);
  }
  return communicator.all_reduce(residual, Reduction::max);
}

}  // namespace shardmat::tools
