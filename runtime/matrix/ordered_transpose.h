// A transposed product whose vectors are in the order in which the rows were given, in memory of the host or of the matrix's
// device.
//
// Threads: as DistributedMatrix. The constructor and multiply() are collective.
#pragma once

#include <memory>
#include <optional>

#include "kernels/base/dense.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/product.h"

namespace shardmat {

/// Where the matrix keeps its rows in another order (boundary rows last, on several ranks), vectors go through host memory.
class OrderedTranspose {
 public:
  /// As DistributedMatrix::transposed_product().
  OrderedTranspose(DistributedMatrix& matrix, std::int64_t columns);

  /// Y = alpha·Aᵀ·X + beta·Y. X: own_rows() × columns; Y: this rank's entries of x × columns; both of the matrix's type, in
  /// any order and with gaps, which stay as they are. `wait`, or vectors that are not on the matrix's device: returns when Y
  /// is complete. Throws Error(usage) on this rank alone for another size or type, before anything moves.
  void multiply(double alpha, const ConstDense& x, double beta, const Dense& y, Stream& stream, bool wait);

  const TransposedProduct& product() const { return *product_; }

 private:
  DistributedMatrix& matrix_;
  std::unique_ptr<TransposedProduct> product_;
  bool in_order_;                           ///< on all ranks
  std::optional<DistributedVector> x_, y_;  ///< where vectors are copied
};

}  // namespace shardmat
