// A matrix ready to multiply a number of right-hand sides: the exchange of x and the kernels' plans.
//
// Threads: one at a time. multiply() and move_x() are collective: all ranks call them in the same order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/exchange/exchange.h"
#include "kernels/base/dense.h"
#include "runtime/matrix/row_plan.h"
#include "runtime/matrix/schedule.h"
#include "runtime/matrix/stored_rows.h"

namespace shardmat {

class DistributedMatrix;

struct ProductOptions {
  std::int64_t columns = 1;       ///< right-hand sides
  std::int64_t column_block = 0;  ///< as MatrixOptions::column_block
  Conversion conversion = Conversion::if_needed;
  std::optional<PlanRequest> plan = {};      ///< none: that of the matrix
  std::optional<std::string> exchange = {};  ///< none: that of the matrix
};

class Product {
 public:
  /// Made by DistributedMatrix::product().
  Product(const DistributedMatrix& matrix, std::int64_t columns, std::unique_ptr<Schedule> schedule,
          std::vector<RowPlan> rows);
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  const DistributedMatrix& matrix() const { return matrix_; }
  /// Right-hand sides: columns of X and Y, which are row-major.
  std::int64_t columns() const { return columns_; }

  /// This rank's entries of X in the memory that the product reads: what is written there needs no copy. Rows are in the
  /// order of DistributedMatrix::x_ids().
  Dense x() const;
  /// Y as multiply() takes it, in memory of the caller: rows in the order of DistributedMatrix::row_ids(), values of
  /// sum_type().
  Dense y_view(void* memory) const;
  std::size_t y_bytes() const;

  /// Y = alpha·A·X + beta·Y in stream order; with beta = 0, Y is only written. Does not wait; can be recorded in a Graph
  /// where exchange().capturable(). X: this rank's entries, copied to x() unless they lie there. Throws Error(usage) for
  /// another size, type, order or device than x() and y_view() have, before anything moves.
  void multiply(double alpha, const ConstDense& x, double beta, const Dense& y, Stream& stream) const;
  /// The same with the X that lies in x().
  void multiply(double alpha, double beta, const Dense& y, Stream& stream) const;
  /// The same without the exchange, for timing. Not collective.
  void multiply_local(double alpha, double beta, const Dense& y, Stream& stream) const;
  /// The exchange alone, for timing. Does not wait.
  void move_x(Stream& stream) const { schedule_->move(stream); }
  /// As Exchange::wait().
  void wait(Stream& stream) const { schedule_->exchange().wait(stream); }

  /// How x moves: all right-hand sides, or column_block() of them.
  const Exchange& exchange() const { return schedule_->exchange(); }
  std::int64_t column_block() const { return schedule_->width(); }
  /// Why column_block() is less than all; else empty.
  std::string why_column_block;
  /// One, or where rows are cut to overlap with the exchange, two: rows that need no x of other ranks, then the rest.
  const std::vector<RowPlan>& row_plans() const { return rows_; }
  /// Of the rows that are multiplied while x moves.
  std::int64_t overlapped_nnz = 0;
  /// From other ranks, for one product.
  std::int64_t bytes_received() const { return schedule_->bytes_received(); }
  /// Device memory of X, of what moves it, and of the plans; the stored matrix is not in it.
  std::int64_t device_bytes() const;
  double choosing_seconds() const;

 private:
  void require_y(const Dense& y) const;

  const DistributedMatrix& matrix_;
  std::int64_t columns_;
  std::unique_ptr<Schedule> schedule_;
  std::vector<RowPlan> rows_;
};

}  // namespace shardmat
