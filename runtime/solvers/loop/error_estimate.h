// What a solve tells of its error, besides the residual: the backward error, and where a method tells a condition number,
// how large the relative error of x is at most.
//
// Threads: as DistributedMatrix. Everything is collective unless it says otherwise.
#pragma once

#include <cstdint>

#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/product.h"
#include "runtime/solvers/loop/solver_options.h"

namespace shardmat {

/// ‖A‖₂, from below: by two products from random signs, once for each set of values. Most matrices have at most twice as
/// much.
class MatrixNorm {
 public:
  explicit MatrixNorm(const Product& product) : product_(product) {}
  /// Of the rows that the product does not hold. Overwrites the product's x(). Waits; the same on all ranks.
  double operator()(Stream& stream);

 private:
  const Product& product_;
  bool known_ = false;
  std::uint64_t version_ = 0;  ///< of the values
  double norm_ = 0;
};

/// By rounding errors minres finds no least-squares solution whose ‖A·z‖, with z = M·r, is a smaller share of ‖A‖·‖z‖: 1e-6
/// in f64, 1e-3 in f32. Not collective.
double least_squares_share(ValueType type);
/// The share at which minres ends: rtol, but at least least_squares_share(); 0 without tolerances. Not collective.
double least_squares_tolerance(const SolverOptions& options, ValueType type);

}  // namespace shardmat
