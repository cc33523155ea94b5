// Matrices ready to multiply a number of right-hand sides, as they are or transposed: the exchange and the kernels' plans.
//
// Ownership: a product belongs to the caller of DistributedMatrix::product(); its matrix must outlive it.
// Threads: as DistributedMatrix. multiply() and move_x() are collective: all ranks call them in the same order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/dense.h"

namespace shardmat {

class DistributedMatrix;
class Exchange;
class HeldRows;
class ReturnedSums;
class RowPlan;
struct RowTransposePlan;
class Schedule;

class Product {
 public:
  /// Made by DistributedMatrix::product().
  Product(const DistributedMatrix& matrix, std::int64_t columns, std::unique_ptr<Schedule> schedule,
          std::vector<RowPlan> rows, std::optional<Buffer> y_by_rows);
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  ~Product();

  const DistributedMatrix& matrix() const { return matrix_; }
  /// Right-hand sides: columns of X and Y.
  std::int64_t columns() const { return columns_; }

  /// This rank's entries of X in the memory that the product reads; writing them here saves a copy. Rows are in the order of
  /// DistributedMatrix::x_rows().
  Dense x() const;
  /// A view of the caller's memory as a Y for multiply(): rows in the order of DistributedMatrix::y_rows(), values of
  /// sum_type(), y_bytes() in all.
  Dense y_view(void* memory) const;
  std::size_t y_bytes() const;

  /// Y = alpha·A·X + beta·Y in stream order, with the same alpha on all ranks. With beta = 0, Y is only written. With
  /// alpha = 0, X is not read and nothing moves, as in BLAS. Does not wait. Can be recorded in a Graph if
  /// exchange().capturable().
  /// X: this rank's entries, row-major or column-major. They are copied to x(), unless they lie there. One rank reads them
  /// where they lie if they are row-major without gaps, do not overlap Y and, on a GPU, are aligned to 256 bytes.
  /// Y: row-major. With ProductOptions::y_order also column-major; the product then transposes its own rows into Y, and
  /// before that Y into its rows unless beta is 0. Any leading dimension that holds a row or a column.
  /// Throws Error(usage) before anything moves, unless size, type, device and row map are those of x() and y_view(). A view
  /// of the caller's memory may leave the map out (Dense::row_map 0); then its rows lie as those of x() and y_view().
  void multiply(double alpha, const ConstDense& x, double beta, const Dense& y, Stream& stream) const;
  /// The same for the X that lies in x().
  void multiply(double alpha, double beta, const Dense& y, Stream& stream) const;
  /// The same without the exchange, for timing. Not collective.
  void multiply_local(double alpha, double beta, const Dense& y, Stream& stream) const;
  /// Number of partial sums of multiply_with_dot(); 0 if the kernel, the number of columns or the cut of the rows does not
  /// allow it. It may change when another product of the matrix is made.
  std::int64_t dot_parts() const;
  /// Y = A·X for the one column in x(). Also writes partial sums in f64 to parts[0 … dot_parts()); together they are this
  /// rank's share of X·Y. Y as y_view() makes it. As multiply() otherwise. REQUIRES: dot_parts() > 0, and a square matrix.
  void multiply_with_dot(const Dense& y, double* parts, Stream& stream) const;
  /// The exchange alone, for timing. Does not wait.
  void move_x(Stream& stream) const;
  /// From now on every Y is 0 in these rows. `held` outlives the product, and may hold other rows later.
  void hold(const HeldRows* held) { held_ = held; }
  /// The rows in which Y is 0, or null.
  const HeldRows* held() const;
  /// Zeros the held rows of a vector like Y, in stream order. Not collective.
  void clear_held(const Dense& vector, Stream& stream) const;
  /// Blocks until all work on the stream is done. Throws Error(rank_lost), after the deadline, if a rank is lost.
  void wait(Stream& stream) const;

  /// How x moves: all right-hand sides, or column_block() of them.
  const Exchange& exchange() const;
  std::int64_t column_block() const;
  /// Why column_block() is less than all; else empty.
  std::string why_column_block;
  /// One plan; two if rows are cut to overlap with the exchange: rows that need no x of other ranks, then the other rows.
  const std::vector<RowPlan>& row_plans() const { return rows_; }
  /// Nonzeros of the rows that are multiplied while x moves.
  std::int64_t overlapped_nnz = 0;
  /// Why other rows that need no x of other ranks wait for it nevertheless: "the rows lie on the map of another matrix: …".
  /// Of this rank; empty: none waits.
  std::string why_rows_wait;
  /// From other ranks, for one product.
  std::int64_t bytes_received() const;
  /// The least number of bytes that multiply_local() moves on this rank: the stored rows, each entry of X that they read
  /// once, and Y once (twice if beta is not 0).
  std::int64_t compulsory_bytes(double beta) const;
  /// Device memory of X, the exchange and the plans, without the stored matrix.
  std::int64_t device_bytes() const;
  double choosing_seconds() const;

 private:
  void require_y(const Dense& y) const;
  /// True if kernels can read X where it lies while they write Y.
  bool reads_in_place(const ConstDense& x, const Dense& y) const;
  /// Calls run(y, ldy) with rows to be written, and brings them into the order of `y`.
  template <class F>
  void with_rows_of(const Dense& y, double beta, Stream& stream, const F& run) const;

  const DistributedMatrix& matrix_;
  std::int64_t columns_;
  std::unique_ptr<Schedule> schedule_;
  std::vector<RowPlan> rows_;
  const HeldRows* held_ = nullptr;
  std::optional<Buffer> y_by_rows_;  ///< copy of a column-major Y; none: such a Y is refused
};

/// Products with the transpose of a matrix that is stored once: Y = alpha·Aᵀ·X + beta·Y. X has the rows of A, and Y has the
/// entries of its x. A rank also forms sums for entries of other ranks, and sends them to their owners: the exchange of a
/// product, the other way round.
class TransposedProduct {
 public:
  /// Made by DistributedMatrix::transposed_product().
  TransposedProduct(const DistributedMatrix& matrix, std::int64_t columns, std::vector<RowTransposePlan> rows,
                    std::unique_ptr<ReturnedSums> sums);
  /// For a matrix in symmetric storage, which is its own transpose.
  TransposedProduct(const DistributedMatrix& matrix, std::unique_ptr<Product> symmetric);
  TransposedProduct(const TransposedProduct&) = delete;
  TransposedProduct& operator=(const TransposedProduct&) = delete;
  ~TransposedProduct();

  const DistributedMatrix& matrix() const { return matrix_; }
  /// Right-hand sides: columns of X and Y.
  std::int64_t columns() const { return columns_; }

  /// Views of the caller's memory as X and Y for multiply(): row-major without gaps, rows in the order of
  /// DistributedMatrix::y_rows() and x_rows().
  Dense x_view(void* memory) const;
  Dense y_view(void* memory) const;

  /// Y = alpha·Aᵀ·X + beta·Y in stream order, with the same alpha on all ranks. With beta = 0, Y is only written. With
  /// alpha = 0, X is not read and nothing moves. New values of the matrix are used. The same bits each time with as many
  /// ranks and threads.
  /// X: row-major, with any leading dimension that holds a row. Y: in either order. They must not overlap.
  /// Throws Error(usage) before anything moves, unless size, type, device and row map are those of x_view() and y_view(),
  /// as Product::multiply() does.
  void multiply(double alpha, const ConstDense& x, double beta, const Dense& y, Stream& stream) const;
  /// The same without the exchange, for timing: Y has only what this rank's rows add. Not collective.
  void multiply_local(double alpha, const ConstDense& x, double beta, const Dense& y, Stream& stream) const;
  /// Blocks until all work on the stream is done. Throws Error(rank_lost), after the deadline, if a rank is lost.
  void wait(Stream& stream) const;

  /// How rows are multiplied: "slices of packed rows, added to columns".
  std::string kernel() const;
  /// From other ranks, for one product.
  std::int64_t bytes_received() const;
  /// Device memory of the exchange and the plans, without the stored matrix and the map of its columns, if it has one.
  std::int64_t device_bytes() const;

 private:
  void require(const ConstDense& x, const Dense& y) const;
  void multiply_rows(double alpha, const ConstDense& x, double beta, void* y, std::int64_t ldy, Stream& stream) const;
  void put(double beta, const Dense& y, Stream& stream) const;

  const DistributedMatrix& matrix_;
  std::int64_t columns_;
  std::vector<RowTransposePlan> rows_;
  std::unique_ptr<ReturnedSums> sums_;  ///< null: one rank, whose rows add to Y itself where that is row-major
  std::unique_ptr<Product> symmetric_;
};

}  // namespace shardmat
