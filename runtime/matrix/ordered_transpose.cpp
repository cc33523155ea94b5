#include "runtime/matrix/ordered_transpose.h"

#include "runtime/context/context_scope.h"

namespace shardmat {
namespace {

bool lies_in_source_order(const DistributedMatrix& matrix) {
  return matrix.y_rows()->route() == nullptr && matrix.y_rows()->in_source_order();
}

}  // namespace

OrderedTranspose::OrderedTranspose(DistributedMatrix& matrix, std::int64_t columns)
    : matrix_(matrix), product_(matrix.transposed_product(columns)) {
  const ContextScope scope(matrix.context());
  in_order_ = matrix.context().communicator().all_reduce(lies_in_source_order(matrix) ? 1 : 0, Reduction::min) == 1;
  x_.emplace(matrix, VectorLayout::rows, matrix.type(), columns);
  y_.emplace(matrix, VectorLayout::columns, matrix.type(), columns);
}

void OrderedTranspose::multiply(double alpha, const ConstDense& x, double beta, const Dense& y, Stream& stream, bool wait) {
  const ContextScope scope(matrix_.context());
  const Device device = matrix_.context().device();
  require_dense("X", x, x_->own_rows(), product_->columns(), matrix_.type(), x.device);
  require_dense("Y", y, y_->own_rows(), product_->columns(), matrix_.type(), y.device);
  const bool by_rows = x.columns == 1 || x.order == DenseOrder::row_major;
  if (in_order_ && by_rows && x.device == device && y.device == device) {
    product_->multiply(alpha, x, beta, y, stream);
    if (wait) product_->wait(stream);
    return;
  }
  x_->set_own(x, stream);
  if (beta != 0) y_->set_own(y, stream);
  product_->multiply(alpha, x_->view(), beta, y_->view(), stream);
  product_->wait(stream);
  y_->own(y, stream);
}

}  // namespace shardmat
