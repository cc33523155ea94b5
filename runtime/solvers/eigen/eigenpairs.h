// Eigenvalues: of a symmetric matrix at the ends of its spectrum (Lanczos), of any matrix the one of the largest magnitude
// (PowerMethod), and of pairs K·x = λ·M·x the smallest ones or those near a shift (solve_pair()). Residuals are computed
// anew.
//
// Ownership: a matrix must outlive the methods that were made for it.
// Threads: as DistributedMatrix. Everything is collective and gives the same result on all ranks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/product.h"
#include "runtime/solvers/loop/preconditioner_options.h"

namespace shardmat {

class PowerStep;
class SumOverRanks;
namespace krylov {
class Passes;
}
namespace modes {
class Block;
}

struct Eigenpair {
  double value = 0;
  double residual = 0;     ///< ‖A·x − value·x‖₂ for the x of length 1
  bool converged = false;  ///< residual ≤ tolerance · EigenResult::norm; of a pair of matrices: as PairOptions says
  double relative = 0;  ///< of a pair of matrices: ‖K·x − λ·M·x‖ / (|λ|·‖M·x‖); of a zero mode / ‖diag(K)·x‖
  bool zero = false;  ///< of a pair of matrices: λ is 0 up to rounding
};

struct EigenResult {
  std::vector<Eigenpair> pairs;  ///< by ascending value
  double norm = 0;  ///< largest magnitude of an eigenvalue estimate: a lower bound of ‖A‖₂ if A is symmetric
  std::int64_t iterations = 0;  ///< products with A, without those that compute residuals at the end
  std::int64_t restarts = 0;    ///< of the basis
  /// Lanczos: a random vector orthogonal to the pairs showed no further copy of a multiple eigenvalue among the wanted ones,
  /// or the basis held the whole space.
  bool confirmed = false;
  bool interrupted = false;  ///< `stop` ended it
  double seconds = 0;
  bool converged() const {
    return std::all_of(pairs.begin(), pairs.end(), [](const Eigenpair& pair) { return pair.converged; });
  }
};

/// Called on every rank now and then: products so far, and for each wanted pair the value and an estimate of the residual.
using EigenMonitor = std::function<void(std::int64_t iterations, const std::vector<Eigenpair>& pairs)>;

enum class Which {
  smallest,  ///< algebraically: −5 comes before 1
  largest,
  both,
};

struct LanczosOptions {
  std::int64_t count = 1;  ///< wanted eigenvalues (Which::both: of each end), at most n of an n × n matrix
  Which which = Which::largest;
  double tolerance = 1e-10;  ///< of the residual, as a multiple of EigenResult::norm
  std::int64_t max_iterations = 10000;
  std::int64_t basis = 0;  ///< vectors, at least 3 more than the wanted pairs; 0: twice the wanted pairs and 40 more
  std::uint64_t seed = 1;  ///< of random vectors
  bool confirm = true;     ///< searches for further copies of multiple eigenvalues; takes up to twice as many products
  bool assume_symmetric = false;  ///< does not check that the matrix is symmetric
  ProductOptions product;         ///< its number of columns is set by Lanczos
};

/// Extreme eigenvalues of a symmetric matrix by the thick-restart Lanczos method.
///
/// K. Wu and H. Simon, "Thick-restart Lanczos method for large symmetric eigenvalue problems", SIAM J. Matrix Anal. Appl. 22
/// (2000). Full orthogonalisation by classical Gram-Schmidt, done twice. One starting vector shows one eigenvector of each
/// multiple eigenvalue. So after the wanted pairs converged, the method goes on with a random vector orthogonal to them,
/// until no other eigenvalue can belong to the wanted ones; further copies come to light then. The basis and all sums of
/// vectors stay on the devices; rank 0 decomposes the small projected matrix.
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

  /// One pair; see its `converged`. `vector`: x of length 1; a vector of one column in row layout of sum_type(),
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

struct PairOptions {
  std::int64_t count = 6;             ///< wanted eigenpairs
  double tolerance = 1e-8;            ///< of ‖K·x − λ·M·x‖ / (λ·‖M·x‖)
  std::int64_t max_iterations = 500;  ///< steps, each of a block of vectors
  std::int64_t guard = 0;             ///< further vectors that lobpcg iterates with; 0: a third of the wanted ones, and 2
  std::uint64_t seed = 1;             ///< of random vectors
  bool confirm = true;                ///< counts the eigenvalues by the signs of further factors; lobpcg: of small pairs
  bool check_count = false;           ///< lobpcg: of large pairs, too
  bool assume_symmetric = false;
  std::optional<double> shift;  ///< shift_invert: modes nearest to it; none: the smallest ones
  /// shift_invert: what solves systems with K − σ·M. factors, minres, or auto: factors where they are to be had and fit
  /// in memory.
  std::string inner = "auto";
  /// Of their residuals by minres, as multiples of right-hand sides; 0: a tenth of the tolerance. Where pairs miss their
  /// tolerance, the last solves are made a hundred times more accurate, up to twice.
  double inner_tolerance = 0;
  MultigridOptions multigrid;  ///< of lobpcg and minres
};

struct PairResult : EigenResult {
  std::int64_t zero_modes = 0;  ///< pairs with λ = 0 up to rounding: motions of bodies that nothing holds
  double orthogonality = 0;     ///< the largest |xᵢᵀ·M·xⱼ − δᵢⱼ|
  /// Eigenvalues between those found that are missing, counted by the signs of factors; below 0: not counted.
  std::int64_t missing = -1;
  std::int64_t identity_rows = 0, penalty_rows = 0;  ///< rows that state known values: they were left out
  double penalty_ratio = 0;
  std::int64_t block = 0;  ///< vectors that were iterated at once
  double shift = 0;        ///< of the factors
  double setup_seconds = 0, product_seconds = 0, mass_seconds = 0, inverse_seconds = 0,
         count_seconds = 0;  ///< on the slowest rank
  std::string inner;         ///< of shift_invert: what was taken of factors and minres
  std::string inverse;       ///< the preconditioner, the factors or the inner iterations
  std::string completeness;  ///< how the set was checked
  /// Nothing is missing: yes, no or unknown.
  const char* complete() const { return missing > 0 ? "no" : confirmed ? "yes" : "unknown"; }
};

/// The eigenvectors that a method found, by ascending λ. Owns them, in host memory. Move-only.
struct PairVectors {
  PairVectors();
  PairVectors(PairVectors&&) noexcept;
  PairVectors& operator=(PairVectors&&) noexcept;
  ~PairVectors();

  std::int64_t count = 0;
  std::unique_ptr<modes::Block> x;
};

enum class PairMethod { lobpcg, shift_invert };
/// The smallest eigenvalues by LOBPCG with multigrid of K, or those nearest to a shift by block Lanczos with the factors of
/// K − σ·M. `m` null: the identity. `x0`: vectors to begin with, n × any number of columns; null: random ones. Collective;
/// the same error on all ranks.
PairResult solve_pair(PairMethod method, DistributedMatrix& k, DistributedMatrix* m, const PairOptions& options,
                      PairVectors& vectors, const DistributedVector* x0 = nullptr, const EigenMonitor& monitor = {},
                      const std::function<bool()>& stop = {});
/// n × count in row layout of f64.
void copy_vectors(const PairVectors& from, DistributedVector& to);

}  // namespace shardmat
