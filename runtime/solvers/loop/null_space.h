// Singular systems: matrices that map constant vectors to 0, as Laplacians with Neumann conditions only and those of graphs,
// or the motions of bodies without supports.
//
// Threads: as DistributedMatrix. Everything is collective unless it says otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "comm/exchange/sum_over_ranks.h"
#include "kernels/krylov/step.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/product.h"
#include "runtime/solvers/loop/null_vectors.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/loop/preconditioner_options.h"
#include "runtime/solvers/loop/solver_options.h"

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

/// P: removes what lies in the null space from each column of a vector.
class NullSpaceProjector {
 public:
  /// For vectors of the matrix's rows and sum_type(). Takes device memory for the vectors, once for each of `columns`, and
  /// checks it first; the same error on all ranks.
  NullSpaceProjector(const DistributedMatrix& matrix, const NullVectors& vectors, std::int64_t columns);

  /// In stream order. `vector`: this rank's rows, row-major. After a first call, calls can be recorded in a Graph.
  void operator()(const Dense& vector, Stream& stream) const;
  /// The same in f64 of `columns` columns of this rank's rows, one after the other, in the order of the source. Collective.
  /// REQUIRES: vectors in f32.
  void remove(std::span<double> of_own, std::int64_t columns) const;
  ValueType type() const { return type_; }
  /// 2-norms of the columns of a vector, and of what lies in the null space. Waits; the same on all ranks.
  struct Measures {
    std::vector<double> norms, removed;
  };
  Measures measure(const Product& product, const DistributedVector& vector, Stream& stream) const;
  /// True if A maps all vectors to 0 up to rounding, as ConstantsProbe says. Overwrites the product's x(). Waits; the same
  /// on all ranks.
  bool are_mapped_to_zero(const Product& product, Stream& stream) const;
  /// How far the transpose of A is from mapping all vectors to 0: the largest product of one with A·x, of a few random x.
  /// Overwrites the product's x(). Waits; the same on all ranks.
  struct TransposeProbe {
    double of_columns = 0, allowed = 0;
    bool maps_to_zero() const { return of_columns <= allowed; }
  };
  TransposeProbe probe_transpose(const Product& product, Stream& stream) const;
  int count() const { return count_; }
  /// Not collective.
  std::int64_t device_bytes() const { return static_cast<std::int64_t>(basis_.bytes()); }

 private:
  void sum(const Dense& vector, Stream& stream) const;

  const std::shared_ptr<const RowMap> map_;
  ValueType type_;
  int count_;
  std::int64_t columns_, apart_;  ///< values of a vector of the basis
  Buffer basis_;
  HostVector<double> exact_;  ///< NullVectors::of_own, if the vectors are in f32
  std::optional<krylov::Passes> passes_;
  mutable SumOverRanks sum_;
  Buffer sums_;  ///< of each vector of the basis, then the square of the vector: one a column
};

/// Constant vectors.
NullVectors constant_vectors(const DistributedMatrix& matrix);
/// A basis of what the given vectors span. Throws on all ranks: Error(usage) for another number of values than this rank's
/// rows have, Error(input) for NaN, infinity and a vector that others span.
NullVectors basis_of(const DistributedMatrix& matrix, const NearNullVectors& given);
/// Throws Error(usage) on all ranks unless A·v = 0 and vᵀ·A = 0 up to rounding for all vectors, as
/// require_constant_null_space() does. Overwrites the product's x().
void require_null_space(const NullSpaceProjector& vectors, const Product& product, Stream& stream);

/// z = P·M·r for a preconditioner M: on vectors without a part in the null space it is symmetric if M is.
std::unique_ptr<Preconditioner> make_projected(std::unique_ptr<Preconditioner> preconditioner,
                                               std::shared_ptr<const NullSpaceProjector> projector);

}  // namespace shardmat
