#include "runtime/matrix/product.h"

#include <utility>

#include "comm/exchange/returned_sums.h"
#include "kernels/base/error.h"
#include "kernels/scale_matrix.h"
#include "kernels/spmm_plan.h"
#include "kernels/vector.h"
#include "runtime/context/context_scope.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/matrix_rows.h"
#include "runtime/matrix/product.h"
#include "runtime/matrix/row_transpose_plan.h"
#include "runtime/matrix/row_view.h"

namespace shardmat {

TransposedProduct::TransposedProduct(const DistributedMatrix& matrix, std::int64_t columns,
                                     std::vector<RowTransposePlan> rows, std::unique_ptr<ReturnedSums> sums)
    : matrix_(matrix), columns_(columns), rows_(std::move(rows)), sums_(std::move(sums)) {}

TransposedProduct::TransposedProduct(const DistributedMatrix& matrix, std::unique_ptr<Product> symmetric)
    : matrix_(matrix), columns_(symmetric->columns()), symmetric_(std::move(symmetric)) {}

TransposedProduct::~TransposedProduct() = default;

Dense TransposedProduct::x_view(void* memory) const { return row_view(memory, *matrix_.y_rows(), columns_, matrix_.type()); }

Dense TransposedProduct::y_view(void* memory) const { return row_view(memory, *matrix_.x_rows(), columns_, matrix_.type()); }

void TransposedProduct::require(const ConstDense& x, const Dense& y) const {
  const Dense of_x = x_view(nullptr), of_y = y_view(nullptr);
  require_dense("X", x, of_x.rows, columns_, of_x.type, of_x.device);
  require_row_map("X", x.row_map, *matrix_.y_rows(), "the rows");
  require_dense("Y", y, of_y.rows, columns_, of_y.type, of_y.device);
  require_row_map("Y", y.row_map, *matrix_.x_rows(), "the columns");
  if (columns_ > 1 && x.order == DenseOrder::column_major)
    throw Error(ErrorKind::usage, "X of a transposed product is column-major; it must be row-major");
}

/// Writes or adds what this rank's rows give to all entries that they have.
void TransposedProduct::multiply_rows(double alpha, const ConstDense& x, double beta, void* y, std::int64_t ldy,
                                      Stream& stream) const {
  const std::int64_t ldx = columns_ == 1 ? 1 : x.leading;
  for (const RowTransposePlan& rows : rows_) {
    const void* const mine =
        static_cast<const char*>(x.data) + static_cast<std::size_t>(rows.first_row * ldx) * size_of(x.type);
    rows.plan->multiply(alpha, mine, ldx, &rows == &rows_.front() ? beta : 1, y, ldy, stream);
  }
}

namespace {

bool overlap(const ConstDense& x, const Dense& y) {
  const auto range = [](const void* data, std::int64_t rows, std::int64_t columns, std::int64_t leading, DenseOrder order,
                        ValueType type) {
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    const std::int64_t lines = order == DenseOrder::row_major ? rows : columns;
    return std::pair(begin, begin + static_cast<std::size_t>(lines * leading) * size_of(type));
  };
  const auto [x_begin, x_end] = range(x.data, x.rows, x.columns, x.leading, x.order, x.type);
  const auto [y_begin, y_end] = range(y.data, y.rows, y.columns, y.leading, y.order, y.type);
  return x_begin < y_end && y_begin < x_end;
}

}  // namespace

/// Y = sums + beta·Y.
void TransposedProduct::put(double beta, const Dense& y, Stream& stream) const {
  const bool dense = columns_ == 1 || (y.order == DenseOrder::row_major && y.leading == columns_);
  if (dense) return combine(y.type, y.rows, columns_, {}, sums_->own(), {beta}, y.data, stream);
  scale_matrix(beta, y, stream);
  add_entries(y.type, y.rows, columns_, nullptr, sums_->own(), y.data, strides(y.order, y.leading), stream);
}

void TransposedProduct::multiply(double alpha, const ConstDense& x, double beta, const Dense& y, Stream& stream) const {
  if (symmetric_ != nullptr) return symmetric_->multiply(alpha, x, beta, y, stream);
  const ContextScope scope(matrix_.context());
  require(x, y);
  if (alpha == 0) return scale_matrix(beta, y, stream);
  const bool one_rank = matrix_.context().communicator().size() == 1;
  if (one_rank && (columns_ == 1 || y.order == DenseOrder::row_major) && !overlap(x, y))
    return multiply_rows(alpha, x, beta, y.data, columns_ == 1 ? 1 : y.leading, stream);
  multiply_rows(alpha, x, 0, sums_->sums(), columns_, stream);
  sums_->start(stream);
  sums_->finish(stream);
  put(beta, y, stream);
}

void TransposedProduct::multiply_local(double alpha, const ConstDense& x, double beta, const Dense& y,
                                       Stream& stream) const {
  if (symmetric_ != nullptr) return symmetric_->multiply_local(alpha, beta, y, stream);
  const ContextScope scope(matrix_.context());
  require(x, y);
  if (alpha == 0) return scale_matrix(beta, y, stream);
  multiply_rows(alpha, x, 0, sums_->sums(), columns_, stream);
  put(beta, y, stream);
}

void TransposedProduct::wait(Stream& stream) const {
  if (symmetric_ != nullptr) return symmetric_->wait(stream);
  const ContextScope scope(matrix_.context());
  sums_->wait(stream);
}

std::string TransposedProduct::kernel() const {
  if (symmetric_ != nullptr) return "as the product: the matrix is its own transpose";
  std::string names;
  for (const RowTransposePlan& rows : rows_) {
    const std::string name(rows.plan->name());
    if (names.find(name) == std::string::npos) names += (names.empty() ? "" : "; ") + name;
  }
  return names;
}

std::int64_t TransposedProduct::bytes_received() const {
  return symmetric_ != nullptr ? symmetric_->bytes_received() : sums_->bytes_received();
}

std::unique_ptr<TransposedProduct> plan_transposed_product(const DistributedMatrix& matrix, MatrixRows& rows,
                                                           std::shared_ptr<const ColumnMap> map, std::int64_t columns) {
  Context& context = matrix.context();
  const bool one_rank = context.communicator().size() == 1;
  auto plans = context.communicator().run_agreed([&] {
    // A rank alone writes its rows' sums into Y, which has no padding.
    auto made = rows.transpose_plans({one_rank ? map->own() : map->length(), columns}, context.stream());
    context.stream().synchronize();  // products may run on another stream
    return made;
  });
  auto sums = std::make_unique<ReturnedSums>(context.exchange_context(matrix.type(), columns), std::move(map));
  return std::make_unique<TransposedProduct>(matrix, columns, std::move(plans), std::move(sums));
}

std::int64_t TransposedProduct::device_bytes() const {
  if (symmetric_ != nullptr) return symmetric_->device_bytes();
  std::int64_t bytes = sums_->device_bytes();
  for (const RowTransposePlan& rows : rows_) bytes += rows.plan->extra_bytes();
  return bytes;
}

}  // namespace shardmat
