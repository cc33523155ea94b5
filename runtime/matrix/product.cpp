#include "runtime/matrix/product.h"

#include <utility>

#include "kernels/base/error.h"
#include "kernels/scale_matrix.h"
#include "kernels/vector.h"
#include "runtime/context/context_scope.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/held_rows.h"
#include "runtime/matrix/row_plan.h"
#include "runtime/matrix/row_view.h"
#include "runtime/matrix/schedule.h"

namespace shardmat {
namespace {

constexpr std::size_t kAlignmentOnGpus = 256;  ///< of a Buffer, on which kernels may rely

}  // namespace

Product::Product(const DistributedMatrix& matrix, std::int64_t columns, std::unique_ptr<Schedule> schedule,
                 std::vector<RowPlan> rows, std::optional<Buffer> y_by_rows)
    : matrix_(matrix),
      columns_(columns),
      schedule_(std::move(schedule)),
      rows_(std::move(rows)),
      y_by_rows_(std::move(y_by_rows)) {}

Product::~Product() = default;

const Exchange& Product::exchange() const { return schedule_->exchange(); }
std::int64_t Product::column_block() const { return schedule_->width(); }
std::int64_t Product::bytes_received() const { return schedule_->bytes_received(); }

std::int64_t Product::compulsory_bytes(double beta) const {
  std::int64_t bytes = matrix_.x_entries() * columns_ * static_cast<std::int64_t>(size_of(matrix_.type()));
  for (const RowPlan& plan : rows_) bytes += plan.compulsory_bytes(beta) * (columns_ / column_block());
  return bytes;
}

Dense Product::x() const { return row_view(schedule_->local_x(), *matrix_.x_rows(), columns_, matrix_.type()); }

Dense Product::y_view(void* memory) const { return row_view(memory, *matrix_.y_rows(), columns_, sum_type(matrix_.type())); }

std::size_t Product::y_bytes() const {
  return static_cast<std::size_t>(matrix_.local_rows() * columns_) * size_of(sum_type(matrix_.type()));
}

void Product::require_y(const Dense& y) const {
  require_dense("Y", y, matrix_.local_rows(), columns_, sum_type(matrix_.type()), matrix_.context().device());
  require_row_map("Y", y.row_map, *matrix_.y_rows(), "the rows");
  if (columns_ > 1 && y.order == DenseOrder::column_major && !y_by_rows_)
    throw Error(ErrorKind::usage,
                "Y is column-major, but the product was made for a row-major Y; make it with "
                "y_order = column_major (C: column_major_y)");
}

template <class F>
void Product::with_rows_of(const Dense& y, double beta, Stream& stream, const F& run) const {
  const auto run_and_hold = [&](void* rows, std::int64_t ld) {
    run(rows, ld);
    Dense view = y_view(rows);
    view.leading = ld;
    clear_held(view, stream);
  };
  if (columns_ == 1) return run_and_hold(y.data, 1);
  if (y.order == DenseOrder::row_major) return run_and_hold(y.data, y.leading);
  const Dense by_rows = y_view(y_by_rows_->data());
  if (beta != 0) copy_matrix(y, by_rows, stream);
  run_and_hold(by_rows.data, by_rows.leading);
  copy_matrix(by_rows, y, stream);
}

void Product::multiply(double alpha, const ConstDense& given, double beta, const Dense& y, Stream& stream) const {
  const ContextScope scope(matrix_.context());
  const Dense slot = x();
  require_dense("X", given, slot.rows, slot.columns, slot.type, slot.device);
  require_row_map("X", given.row_map, *matrix_.x_rows(), "the columns");
  if (columns_ > 1 && given.data == slot.data && slot.rows > 0 && given.order != slot.order)
    throw Error(ErrorKind::usage, "X is column-major in the memory of the product's x(), which is row-major");
  require_y(y);
  if (alpha == 0) return scale_matrix(beta, y, stream);
  if (given.data == slot.data) return multiply(alpha, beta, y, stream);
  ConstDense from = given;
  if (columns_ == 1) from.order = DenseOrder::row_major, from.leading = 1;
  if (reads_in_place(from, y))
    return with_rows_of(y, beta, stream, [&](void* rows, std::int64_t ld) {
      for (const RowPlan& plan : rows_) plan.multiply(alpha, from.data, beta, rows, ld, stream);
    });
  copy_matrix(from, slot, stream);
  multiply(alpha, beta, y, stream);
}

bool Product::reads_in_place(const ConstDense& x, const Dense& y) const {
  if (!exchange().x_may_lie_elsewhere() || column_block() != columns_) return false;
  if (x.order != DenseOrder::row_major || x.leading != columns_) return false;
  const auto begin = reinterpret_cast<std::uintptr_t>(x.data), y_begin = reinterpret_cast<std::uintptr_t>(y.data);
  const std::size_t bytes = static_cast<std::size_t>(x.rows * columns_) * size_of(x.type);
  const std::int64_t y_lines = y.order == DenseOrder::row_major ? y.rows : y.columns;
  const std::size_t y_bytes = static_cast<std::size_t>(y_lines * y.leading) * size_of(y.type);
  const std::size_t alignment = x.device.backend == Backend::host ? size_of(x.type) : kAlignmentOnGpus;
  return begin % alignment == 0 && (begin + bytes <= y_begin || y_begin + y_bytes <= begin);
}

void Product::multiply(double alpha, double beta, const Dense& y, Stream& stream) const {
  const ContextScope scope(matrix_.context());
  require_y(y);
  if (alpha == 0) return scale_matrix(beta, y, stream);
  with_rows_of(y, beta, stream,
               [&](void* rows, std::int64_t ld) { schedule_->multiply(rows_, alpha, beta, rows, ld, stream); });
}

void Product::multiply_local(double alpha, double beta, const Dense& y, Stream& stream) const {
  const ContextScope scope(matrix_.context());
  require_y(y);
  if (alpha == 0) return scale_matrix(beta, y, stream);
  with_rows_of(y, beta, stream,
               [&](void* rows, std::int64_t ld) { schedule_->multiply_local(rows_, alpha, beta, rows, ld, stream); });
}

std::int64_t Product::dot_parts() const { return rows_.size() == 1 && columns_ == 1 ? rows_[0].dot_parts() : 0; }

void Product::multiply_with_dot(const Dense& y, double* parts, Stream& stream) const {
  const ContextScope scope(matrix_.context());
  require_y(y);
  schedule_->move(stream);
  rows_[0].multiply_with_dot(schedule_->exchange().x(), schedule_->local_x(), y.data, parts, stream);
  clear_held(y, stream);
}

const HeldRows* Product::held() const { return held_ != nullptr && held_->count() > 0 ? held_ : nullptr; }

void Product::clear_held(const Dense& vector, Stream& stream) const {
  if (held_ != nullptr) held_->clear(vector, stream);
}

void Product::move_x(Stream& stream) const {
  const ContextScope scope(matrix_.context());
  schedule_->move(stream);
}

void Product::wait(Stream& stream) const {
  const ContextScope scope(matrix_.context());
  schedule_->exchange().wait(stream);
}

std::int64_t Product::device_bytes() const {
  std::int64_t bytes = schedule_->device_bytes() + (y_by_rows_ ? static_cast<std::int64_t>(y_by_rows_->bytes()) : 0);
  for (const RowPlan& plan : rows_) bytes += plan.extra_bytes();
  return bytes;
}

double Product::choosing_seconds() const {
  double seconds = 0;
  for (const RowPlan& plan : rows_) seconds += plan.choosing_seconds();
  return seconds;
}

}  // namespace shardmat
