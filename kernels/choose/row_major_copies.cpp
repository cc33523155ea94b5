#include "kernels/choose/row_major_copies.h"

#include <utility>

#include "kernels/vector.h"

namespace shardmat {
namespace {

class RowMajorCopiesPlan final : public SpmmPlan {
 public:
  RowMajorCopiesPlan(std::unique_ptr<SpmmPlan> rows, const RightHandSides& rhs)
      : SpmmPlan(rows->shared_storage(), rhs),
        rows_(std::move(rows)),
        of_x_(Device{}, bytes_of(rhs.x, storage().cols, storage().type)),
        of_y_(Device{}, bytes_of(rhs.y, storage().rows, sum_type(storage().type))) {}

  bool reproducible() const override { return rows_->reproducible(); }
  std::int64_t extra_bytes() const override {
    return rows_->extra_bytes() + static_cast<std::int64_t>(of_x_.bytes() + of_y_.bytes());
  }

 private:
  std::int64_t count() const { return right_hand_sides().count; }
  /// One column lies in both orders at once.
  bool copies(DenseOrder order) const { return order == DenseOrder::column_major && count() > 1; }
  std::int64_t leading_by_rows(DenseOrder order, std::int64_t leading) const {
    return order == DenseOrder::column_major ? 1 : leading;
  }
  std::size_t bytes_of(DenseOrder order, std::int64_t rows, ValueType type) const {
    return copies(order) ? static_cast<std::size_t>(rows * count()) * size_of(type) : 0;
  }
  Dense view(void* data, std::int64_t rows, std::int64_t leading, DenseOrder order, ValueType type) const {
    return {data, rows, count(), leading, order, type, Device{}};
  }

  void run(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy,
           Stream& stream) const override {
    const RightHandSides& rhs = right_hand_sides();
    if (!copies(rhs.x)) {
      ldx = leading_by_rows(rhs.x, ldx);
    } else {
      const std::int64_t cols = storage().cols;
      ConstDense from;
      from.data = x, from.rows = cols, from.columns = count(), from.leading = ldx, from.order = rhs.x;
      from.type = storage().type;
      copy_matrix(from, view(of_x_.data(), cols, count(), DenseOrder::row_major, from.type), stream);
      x = of_x_.data(), ldx = count();
    }
    if (!copies(rhs.y)) return rows_->multiply(alpha, x, ldx, beta, y, leading_by_rows(rhs.y, ldy), stream);
    const ValueType type = sum_type(storage().type);
    const Dense by_columns = view(y, storage().rows, ldy, rhs.y, type);
    const Dense by_rows = view(of_y_.data(), storage().rows, count(), DenseOrder::row_major, type);
    if (beta != 0) copy_matrix(by_columns, by_rows, stream);
    rows_->multiply(alpha, x, ldx, beta, by_rows.data, count(), stream);
    copy_matrix(by_rows, by_columns, stream);
  }

  std::unique_ptr<SpmmPlan> rows_;
  Buffer of_x_, of_y_;  ///< empty if the operand is not copied
};

}  // namespace

std::unique_ptr<SpmmPlan> with_row_major_copies(std::unique_ptr<SpmmPlan> rows, const RightHandSides& rhs) {
  return std::make_unique<RowMajorCopiesPlan>(std::move(rows), rhs);
}

}  // namespace shardmat
