// A method for least squares: what it does in one iteration. The loop, the tolerance and what is computed anew belong to
// solve_least_squares(). To add one: a file of methods/ and a line in least_squares.cpp.
#pragma once

#include <memory>
#include <string_view>

#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/product.h"

namespace shardmat {

/// What a method works with; all of it outlives the method.
class LeastSquaresInputs {
 public:
  LeastSquaresInputs(DistributedMatrix& a, const Product& product, const TransposedProduct& transposed);

  Stream& stream() const;
  /// A vector of zeros like b, or like x.
  DistributedVector like_b() const;
  DistributedVector like_x() const;
  /// y = alpha·A·x + beta·y, and y = alpha·Aᵀ·x + beta·y.
  void multiply(double alpha, const DistributedVector& x, double beta, DistributedVector& y) const;
  void multiply_transposed(double alpha, const DistributedVector& x, double beta, DistributedVector& y) const;
  /// Over all ranks. Waits.
  double norm(const DistributedVector& x);

 private:
  DistributedMatrix& a_;
  const Product& product_;
  const TransposedProduct& transposed_;
  VectorSums sums_;
  Buffer result_;  ///< of a norm
};

/// What is known after start(), and after each iteration.
struct LeastSquaresNorms {
  double residual = 0;         ///< ‖b − A·x‖
  double normal_residual = 0;  ///< ‖Aᵀ·(b − A·x)‖
  double of_a = 0;             ///< an estimate of ‖A‖, which grows
};

/// Threads: one at a time. All functions are collective.
class LeastSquaresMethod {
 public:
  virtual ~LeastSquaresMethod() = default;
  /// Takes x, and r = b − A·x, which it may overwrite. REQUIRES: both outlive all calls until the next start().
  virtual LeastSquaresNorms start(DistributedVector& r, DistributedVector& x) = 0;
  /// Changes x. REQUIRES: the normal residual was not 0.
  virtual LeastSquaresNorms iterate() = 0;
};

struct LeastSquaresEntry {
  std::string_view name, help;
  std::unique_ptr<LeastSquaresMethod> (*make)(LeastSquaresInputs& inputs);
};

}  // namespace shardmat
