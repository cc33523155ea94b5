#include "runtime/matrix/product.h"

#include <utility>

#include "kernels/vector.h"
#include "runtime/matrix/distributed_matrix.h"

namespace shardmat {

Product::Product(const DistributedMatrix& matrix, std::int64_t columns, std::unique_ptr<Schedule> schedule,
                 std::vector<RowPlan> rows)
    : matrix_(matrix), columns_(columns), schedule_(std::move(schedule)), rows_(std::move(rows)) {}

Dense Product::x() const {
  return {schedule_->local_x(), std::ssize(matrix_.x_ids()), columns_, columns_, DenseOrder::row_major,
          matrix_.type(),       matrix_.context().device()};
}

Dense Product::y_view(void* memory) const {
  return {memory,
          matrix_.local_rows(),
          columns_,
          columns_,
          DenseOrder::row_major,
          sum_type(matrix_.type()),
          matrix_.context().device()};
}

std::size_t Product::y_bytes() const {
  return static_cast<std::size_t>(matrix_.local_rows() * columns_) * size_of(sum_type(matrix_.type()));
}

void Product::require_y(const Dense& y) const {
  require_dense("Y", y, matrix_.local_rows(), columns_, sum_type(matrix_.type()), matrix_.context().device());
}

void Product::multiply(double alpha, const ConstDense& given, double beta, const Dense& y, Stream& stream) const {
  const Dense slot = x();
  require_dense("X", given, slot.rows, slot.columns, slot.type, slot.device);
  require_y(y);
  if (given.data != slot.data) {
    const std::size_t value = size_of(slot.type), row = static_cast<std::size_t>(columns_) * value;
    const std::size_t apart = columns_ == 1 ? value : static_cast<std::size_t>(given.leading) * value;
    copy_rows(row, slot.rows, given.data, apart, slot.data, row, stream);
  }
  schedule_->multiply(rows_, alpha, beta, y.data, columns_ == 1 ? 1 : y.leading, stream);
}

void Product::multiply(double alpha, double beta, const Dense& y, Stream& stream) const {
  require_y(y);
  schedule_->multiply(rows_, alpha, beta, y.data, columns_ == 1 ? 1 : y.leading, stream);
}

void Product::multiply_local(double alpha, double beta, const Dense& y, Stream& stream) const {
  require_y(y);
  schedule_->multiply_local(rows_, alpha, beta, y.data, columns_ == 1 ? 1 : y.leading, stream);
}

std::int64_t Product::device_bytes() const {
  std::int64_t bytes = schedule_->device_bytes();
  for (const RowPlan& plan : rows_) bytes += plan.extra_bytes();
  return bytes;
}

double Product::choosing_seconds() const {
  double seconds = 0;
  for (const RowPlan& plan : rows_) seconds += plan.choosing_seconds();
  return seconds;
}

}  // namespace shardmat
