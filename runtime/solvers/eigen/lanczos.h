// Extreme eigenvalues of a symmetric matrix by the thick-restart Lanczos method.
//
// K. Wu and H. Simon, "Thick-restart Lanczos method for large symmetric eigenvalue problems", SIAM J. Matrix Anal. Appl. 22
// (2000). Full orthogonalisation by classical Gram-Schmidt, done twice. One starting vector shows one eigenvector of each
// multiple eigenvalue. So after the wanted pairs converged, the method goes on with a random vector orthogonal to them,
// until no other eigenvalue can belong to the wanted ones; further copies come to light then. The basis and all sums of
// vectors stay on the devices; rank 0 decomposes the small projected matrix.
//
// Threads: as DistributedMatrix. Everything is collective and gives the same result on all ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/product.h"
#include "runtime/solvers/eigen/eigenpairs.h"

namespace shardmat {

class SumOverRanks;
namespace krylov {
class Passes;
}

enum class Which {
  smallest,  ///< algebraically: −5 comes before 1
  largest,
  both,
};

struct LanczosOptions {
  std::int64_t count = 1;  ///< wanted eigenvalues, for Which::both of each end; n of an n × n matrix at most
  Which which = Which::largest;
  double tolerance = 1e-10;  ///< of the residual, as a multiple of EigenResult::norm
  std::int64_t max_iterations = 10000;
  std::int64_t basis = 0;  ///< vectors of the basis, more than the wanted pairs by 3 or more; 0: twice these and 40 more
  std::uint64_t seed = 1;  ///< of random vectors
  bool confirm = true;     ///< searches for further copies of multiple eigenvalues; takes up to twice as many products
  bool assume_symmetric = false;  ///< does not check that the matrix is symmetric
  ProductOptions product;         ///< its number of columns is set by Lanczos
};

class Lanczos {
 public:
  /// A symmetric matrix of f64 or f32 with a row or more; it must outlive this object. Takes basis + kept vectors of device
  /// memory, and checks it first. Throws the same Error on all ranks: usage for options out of range, half precision, and a
  /// matrix that is not square or not symmetric (probe_symmetry()); input for one without rows.
  Lanczos(DistributedMatrix& matrix, const LanczosOptions& options);
  ~Lanczos();
  Lanczos(const Lanczos&) = delete;
  Lanczos& operator=(const Lanczos&) = delete;

  /// The wanted pairs by ascending value; those that did not converge say so. Throws Error(input) if products with A leave
  /// the range of numbers whose squares can be formed.
  /// `stop` is asked on every rank now and then; true on any rank ends the run with the pairs at hand, after as many
  /// products as wanted pairs at least.
  EigenResult run(const EigenMonitor& monitor = {}, const std::function<bool()>& stop = {});

  /// Pairs that run() gives: count, or for Which::both twice as many, but n at most.
  std::int64_t wanted() const { return low_ + high_; }
  /// The eigenvectors of run(): n × wanted() in row layout of sum_type(), each column of length 1. Call it after run().
  void copy_vectors(DistributedVector& vectors, Stream& stream) const;

  const Product& product() const { return *product_; }
  const LanczosOptions& options() const { return options_; }
  std::string_view summed_by() const;
  /// Device memory of the product and of the vectors of this object.
  std::int64_t device_bytes() const;

 private:
  void require_sensible() const;
  void require_symmetric() const;
  std::int64_t apart() const;  ///< entries from one vector of the basis to the next

  DistributedMatrix& matrix_;
  LanczosOptions options_;
  std::int64_t low_ = 0, high_ = 0, kept_ = 0;  ///< wanted of each end; vectors that a restart keeps
  std::unique_ptr<Product> product_;
  std::unique_ptr<krylov::Passes> passes_;
  std::unique_ptr<SumOverRanks> sum_;
  Buffer vectors_;  ///< basis + 1 vectors, then kept_ vectors of scratch
  Buffer scalars_;  ///< basis + 2 numbers
};

}  // namespace shardmat
