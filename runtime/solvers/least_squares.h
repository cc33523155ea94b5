// Least squares: the x that makes ‖b − A·x‖₂ least, for a matrix of any shape. A start from 0 gives the shortest such x.
//
// Ownership: nothing stays after the call.
// Threads: as DistributedMatrix. solve_least_squares() is collective.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/progress.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/distributed_vector.h"

namespace shardmat {

struct LeastSquaresOptions {
  std::string method = "lsqr";  ///< "lsqr" or "cgls"
  /// Ends when ‖r‖ ≤ rtol·(‖b‖ + ‖A‖·‖x‖), or when ‖Aᵀ·r‖ ≤ rtol·‖A‖·‖r‖, for r = b − A·x; none: as default_rtol().
  std::optional<double> rtol;
  std::int64_t max_iterations = 10'000;
  Progress progress;
};

enum class LeastSquaresEnd {
  solved,          ///< the residual meets the tolerance: A·x = b
  least_squares,   ///< Aᵀ·r meets it: r is as short as it can be
  rounding,        ///< computed anew, neither meets it, several times in turn
  max_iterations,  ///< the iterations ran out
};

struct LeastSquaresResult {
  LeastSquaresEnd end = LeastSquaresEnd::max_iterations;
  std::int64_t iterations = 0, restarts = 0;
  double norm_of_b = 0, norm_of_x = 0;
  double norm_of_a = 0;        ///< an estimate of ‖A‖, by which the tolerance is judged
  double residual = 0;         ///< ‖b − A·x‖₂, computed anew at the end
  double normal_residual = 0;  ///< ‖Aᵀ·(b − A·x)‖₂, likewise
  double seconds = 0;
  std::vector<double> history;  ///< ‖r‖ as the method updated it: the first, then one for each iteration

  bool converged() const { return end == LeastSquaresEnd::solved || end == LeastSquaresEnd::least_squares; }
  /// One line for people.
  std::string_view explanation() const;
};

/// One entry of the list of methods: a file of methods/.
struct LeastSquaresEntry;
std::span<const LeastSquaresEntry> least_squares_methods();
/// True if a method for least squares has this name.
bool is_least_squares_method(std::string_view name);

/// From the x at hand, whose rows lie as A.x_rows(); b lies as A.y_rows(). Both have one column and the type of the matrix,
/// f64 or f32. Takes products with A and with Aᵀ from the rows that are stored once (DistributedMatrix::
/// transposed_product()). The bits of x are the same in every run with as many ranks and threads, unless NCCL sums over the
/// ranks. The same error on all ranks: Error(usage) for other vectors and options, Error(input) for NaN and infinity in b or
/// x.
LeastSquaresResult solve_least_squares(DistributedMatrix& a, const DistributedVector& b, DistributedVector& x,
                                       const LeastSquaresOptions& options);

}  // namespace shardmat
