// What methods for K·x = λ·M·x take and give.
//
// Threads: values; any thread. The same on all ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/matrix/distributed_vector.h"
#include "runtime/solvers/eigen/eigenpairs.h"
#include "runtime/solvers/eigen/panels.h"
#include "runtime/solvers/loop/multigrid_options.h"

namespace shardmat {

struct PairOptions {
  std::int64_t count = 6;             ///< wanted eigenpairs
  double tolerance = 1e-8;            ///< of ‖K·x − λ·M·x‖ / (λ·‖M·x‖)
  std::int64_t max_iterations = 500;  ///< of blocks
  std::int64_t guard = 0;             ///< further vectors that lobpcg iterates with; 0: a third of the wanted ones, and 2
  std::uint64_t seed = 1;             ///< of random vectors
  bool confirm = true;                ///< counts the eigenvalues by the signs of further factors; lobpcg: of small pairs
  bool check_count = false;           ///< lobpcg: of large pairs, too
  bool assume_symmetric = false;
  std::optional<double> shift;  ///< shift_invert: modes nearest to it; none: the smallest ones
  /// shift_invert, of the systems with K − σ·M: factors, minres, or auto: factors where they are to be had and fit in
  /// memory.
  std::string inner = "auto";
  double inner_tolerance = 0;  ///< of their residuals by minres; 0: a tenth of the tolerance
  MultigridOptions multigrid;  ///< of lobpcg and minres
};

struct PairResult : EigenResult {
  std::int64_t zero_modes = 0;  ///< pairs with λ = 0 up to rounding: motions of bodies that nothing holds
  double orthogonality = 0;     ///< the largest |xᵢᵀ·M·xⱼ − δᵢⱼ|
  /// What the signs of factors say: the eigenvalues between those found that are not among them; below 0: nobody looked.
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

/// The eigenvectors that a method found: `count` columns of panels, by ascending λ.
struct PairVectors {
  std::int64_t count = 0;
  std::unique_ptr<modes::Block> x;
};

class DistributedMatrix;

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
