// What methods for eigenvalues give: values with residuals that were computed anew.
//
// Threads: values, the same on all ranks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace shardmat {

struct Eigenpair {
  double value = 0;
  double residual = 0;     ///< ‖A·x − value·x‖₂ for the x of length 1
  bool converged = false;  ///< residual ≤ tolerance · EigenResult::norm; of a pair of matrices: as PairOptions says
  double relative = 0;  ///< of a pair of matrices: ‖K·x − λ·M·x‖ / (|λ|·‖M·x‖); of a zero mode over ‖diag(K)·x‖
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

}  // namespace shardmat
