// Products with the transpose of a matrix that is stored once: Y = alpha·Aᵀ·X + beta·Y. X has the rows of A, and Y has the
// entries of its x. What a rank sums for entries of others goes back to them, the exchange of a product the other way round.
//
// Threads: as DistributedMatrix. multiply() is collective.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/dense.h"
#include "kernels/base/device.h"

namespace shardmat {

class DistributedMatrix;
class Product;
class ReturnedSums;
struct RowTransposePlan;

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
  /// As Exchange::wait().
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
