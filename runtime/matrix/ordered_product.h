// A product whose vectors are in the order in which the rows were given, in memory of the host or of the matrix's device.
//
// Threads: as DistributedMatrix. The constructor and multiply() are collective.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "kernels/base/dense.h"
#include "kernels/choose/value_map.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/product.h"

namespace shardmat {

/// Where the matrix keeps its rows in another order (boundary rows last, on several ranks), passes over the vectors reorder
/// them on the device. Rows that a partitioner spread anew, and half precision in another order, go through host memory.
class OrderedProduct {
 public:
  /// As DistributedMatrix::product().
  OrderedProduct(DistributedMatrix& matrix, const ProductOptions& options);

  /// Y = alpha·A·X + beta·Y. X: this rank's entries of x × columns, of the matrix's type; Y: own_rows() × columns, of
  /// sum_type(); in any order and with gaps, which stay as they are. `wait`, or vectors that are not on the matrix's device:
  /// returns when Y is complete. Throws Error(usage) on this rank alone for another size or type, before anything moves.
  void multiply(double alpha, const ConstDense& x, double beta, const Dense& y, Stream& stream, bool wait);

  const Product& product() const { return *product_; }
  /// The matrix keeps its rows in the order of the caller on all ranks.
  bool in_order() const { return in_order_; }
  /// Names of the kernels with their tunables, and why they were chosen.
  const std::string& kernel() const { return kernel_; }
  const std::string& why() const { return why_; }

 private:
  /// Memory on the device for a matrix of the caller, grown on demand.
  struct Copies {
    Buffer here;    ///< of one in host memory
    Buffer packed;  ///< row by row without gaps
  };
  class Operand;

  void multiply_by_vectors(double alpha, const ConstDense& x, double beta, const Dense& y, Stream& stream);

  DistributedMatrix& matrix_;
  std::unique_ptr<Product> product_;
  std::string kernel_, why_;
  bool in_order_ = true;
  std::optional<ValuePicker> to_places_, from_places_;  ///< of the rows, if the matrix orders them otherwise
  std::optional<DistributedVector> x_, y_;              ///< where rows are on other ranks, or values are in half precision
  Buffer ordered_y_;                                    ///< with the places
  Copies copies_of_x_, copies_of_y_;
};

}  // namespace shardmat
