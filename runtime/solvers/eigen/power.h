// The power method: the eigenvalue of the largest magnitude.
//
// Threads: as DistributedMatrix. Everything is collective and gives the same result on all ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "comm/exchange/sum_over_ranks.h"
#include "kernels/vector.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/product.h"
#include "runtime/solvers/eigen/eigenpairs.h"

namespace shardmat {

struct PowerOptions {
  double tolerance = 1e-10;  ///< of the residual, as a multiple of the eigenvalue's magnitude
  std::int64_t max_iterations = 10000;
  std::uint64_t seed = 1;  ///< of the first x
  ProductOptions product;  ///< its number of columns is set by PowerMethod
};

/// The step x ← A·x / ‖A·x‖ and what x and A·x tell about the eigenvalue, for PowerMethod and the timed iterations of
/// iterate(). x and y are this rank's rows of one column, apart from each other on the device, of the matrix's type.
class PowerStep {
 public:
  /// The product must outlive this object.
  explicit PowerStep(const Product& product);

  /// xᵀy and yᵀy on the device, in stream order. After a first call it can be recorded in a Graph.
  void add(const void* x, const void* y, Stream& stream);
  /// xᵀy and yᵀy on the host.
  std::pair<double, double> dots(const void* x, const void* y, Stream& stream);
  /// x ← y / ‖y‖, in stream order.
  void normalise(const void* y, void* x, Stream& stream);
  /// λ = xᵀy / xᵀx and the residual ‖y - λx‖ for y = A·x. y becomes y - λx.
  std::pair<double, double> eigenvalue(const void* x, void* y, Stream& stream);
  /// What sums over the ranks: SumOverRanks::name().
  std::string_view summed_by() const { return sum_.name(); }

 private:
  const Product& product_;
  SumOverRanks sum_;
  std::optional<DotProducts> products_;
  Buffer values_;
};

/// x ← A·x / ‖A·x‖ with the Rayleigh quotient xᵀ·A·x (Golub and Van Loan, Matrix Computations, 4th ed., 7.3.1). The error
/// shrinks by |λ₂/λ₁| an iteration. It does not converge where two eigenvalues of the largest magnitude differ: λ and −λ, or
/// a complex pair.
class PowerMethod {
 public:
  /// Any square matrix of f64 or f32 with a row or more; it must outlive this object. Throws the same Error on all ranks:
  /// usage for options out of range, half precision and other shapes; input for a matrix without rows.
  PowerMethod(DistributedMatrix& matrix, const PowerOptions& options);

  /// One pair, whose `converged` tells. `vector`: x of length 1; a vector of one column in row layout of sum_type(),
  /// overwritten. Throws Error(input) if products with A leave the range of numbers whose squares can be formed.
  /// `stop` is asked on every rank now and then; true on any rank ends the run.
  EigenResult run(DistributedVector& vector, const EigenMonitor& monitor = {}, const std::function<bool()>& stop = {});

  const Product& product() const { return *product_; }
  std::string_view summed_by() const { return step_->summed_by(); }
  /// Device memory of the product and of the vectors of this object.
  std::int64_t device_bytes() const;

 private:
  double length(const DistributedVector& x, Stream& stream);

  DistributedMatrix& matrix_;
  PowerOptions options_;
  std::unique_ptr<Product> product_;
  std::optional<PowerStep> step_;
  std::optional<DistributedVector> y_, r_;
};

/// Throws Error(usage or input), naming `method`, unless eigenvalues of the matrix can be computed: it is square, has rows,
/// and its values are f64 or f32. Not collective.
void require_eigen_matrix(std::string_view method, const DistributedMatrix& matrix);

}  // namespace shardmat
