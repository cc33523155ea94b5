// Singular systems whose matrix maps constant vectors to 0, as Laplacians with Neumann conditions only and those of graphs.
//
// Threads: as DistributedMatrix. Everything is collective unless it says otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "comm/exchange/sum_over_ranks.h"
#include "kernels/vector.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/product.h"
#include "runtime/solvers/loop/choices.h"
#include "runtime/solvers/loop/preconditioner.h"

namespace shardmat {

/// Throws Error(usage) on all ranks unless A·1 = 0 and 1ᵀ·A = 0 up to rounding: |A·1| and |1ᵀ·A·x| of random signs x are at
/// most 1e-10 (f32: 1e-5) of Σ|a_ij| / √n. Overwrites the product's x(). REQUIRES: a square matrix.
void require_constant_null_space(const Product& product, Stream& stream);

/// How far a matrix is from mapping constant vectors to 0. Both numbers are at most `allowed` if it does, up to rounding.
struct ConstantsProbe {
  double of_rows = 0;     ///< |A·1|
  double of_columns = 0;  ///< the largest |1ᵀ·A·x| of a few random x
  double allowed = 0;     ///< 1e-10 (f32: 1e-5) of Σ|a_ij| / √n
  bool in_null_space() const { return of_rows <= allowed && of_columns <= allowed; }
};
/// Overwrites the product's x(). REQUIRES: a square matrix with rows. Waits; the same on all ranks.
ConstantsProbe probe_constants(const Product& product, Stream& stream);
/// Of a matrix that maps constant vectors to 0: true if it maps a constant of some unknowns to 0, too: of one unknown of
/// every node (numbered node by node, or one unknown after the other), as a structure without supports does. Then constant
/// vectors are a part of its null space only. `allowed`: ConstantsProbe::allowed. Overwrites the product's x(). Waits; the
/// same on all ranks.
bool maps_parts_to_zero(const Product& product, double allowed, Stream& stream);

/// Removes the mean of each column: projects on the vectors that are orthogonal to constant ones.
class MeanRemover {
 public:
  /// For vectors of the matrix's rows and sum_type(). Takes another vector of device memory and checks it first; the same
  /// error on all ranks.
  MeanRemover(const DistributedMatrix& matrix, std::int64_t columns);

  /// In stream order. `vector`: this rank's rows, row-major. After a first call, calls can be recorded in a Graph.
  void operator()(const Dense& vector, Stream& stream) const;
  /// Norms and means of the columns of a vector. Waits; the same on all ranks.
  struct Measures {
    std::vector<double> norms, means;
  };
  Measures measure(const Product& product, const DistributedVector& vector, Stream& stream) const;
  /// Not collective.
  std::int64_t device_bytes() const;

 private:
  void sum(const Dense& x, const Dense& y, double* result, Stream& stream) const;

  double rows_;  ///< of all ranks
  DistributedVector ones_;
  mutable std::optional<ColumnDots> dots_;
  mutable SumOverRanks sum_;
  Buffer sums_;  ///< two a column
};

/// z = P·M·r for a preconditioner M, where P removes the means: on vectors without a mean it is symmetric if M is.
std::unique_ptr<Preconditioner> make_mean_free(std::unique_ptr<Preconditioner> preconditioner,
                                               const DistributedMatrix& matrix, std::int64_t columns);

}  // namespace shardmat
