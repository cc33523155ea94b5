// The power method: the eigenvalue of the largest magnitude.
//
// Threads: as DistributedMatrix. Everything is collective and gives the same result on all ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/product.h"
#include "runtime/solvers/eigen/eigenpairs.h"

namespace shardmat {

class PowerStep;

struct PowerOptions {
  double tolerance = 1e-10;  ///< of the residual, as a multiple of the eigenvalue's magnitude
  std::int64_t max_iterations = 10000;
  std::uint64_t seed = 1;  ///< of the first x
  ProductOptions product;  ///< its number of columns is set by PowerMethod
};

/// x ← A·x / ‖A·x‖ with the Rayleigh quotient xᵀ·A·x (Golub and Van Loan, Matrix Computations, 4th ed., 7.3.1). The error
/// shrinks by |λ₂/λ₁| an iteration. It does not converge where two eigenvalues of the largest magnitude differ: λ and −λ, or
/// a complex pair.
class PowerMethod {
 public:
  /// Any square matrix of f64 or f32 with a row or more; it must outlive this object. Throws the same Error on all ranks:
  /// usage for options out of range, half precision and other shapes; input for a matrix without rows.
  PowerMethod(DistributedMatrix& matrix, const PowerOptions& options);
  ~PowerMethod();
  PowerMethod(const PowerMethod&) = delete;
  PowerMethod& operator=(const PowerMethod&) = delete;

  /// One pair, whose `converged` tells. `vector`: x of length 1; a vector of one column in row layout of sum_type(),
  /// overwritten. Throws Error(input) if products with A leave the range of numbers whose squares can be formed.
  /// `stop` is asked on every rank now and then; true on any rank ends the run.
  EigenResult run(DistributedVector& vector, const EigenMonitor& monitor = {}, const std::function<bool()>& stop = {});

  const Product& product() const { return *product_; }
  std::string_view summed_by() const;
  /// Device memory of the product and of the vectors of this object.
  std::int64_t device_bytes() const;

 private:
  double length(const DistributedVector& x, Stream& stream);

  DistributedMatrix& matrix_;
  PowerOptions options_;
  std::unique_ptr<Product> product_;
  std::unique_ptr<PowerStep> step_;
  std::optional<DistributedVector> y_, r_;
};

/// Throws Error(usage or input), naming `method`, unless eigenvalues of the matrix can be computed: it is square, has rows,
/// and its values are f64 or f32. Not collective.
void require_eigen_matrix(std::string_view method, const DistributedMatrix& matrix);

}  // namespace shardmat
