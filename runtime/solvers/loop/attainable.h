// What accuracy rounding errors allow: ‖ |A|·|x| ‖, which bounds the rounding errors of b − A·x.
//
// The host sums the rows that are in its memory; the stored values stay as they are. Where the rows were dropped, or the
// columns of X move in blocks, products with x under random signs tell a lower bound: it is smaller by the square root of
// the nonzeros a row at most, or nearly so, and never calls a residual small that is not.
//
// Threads: as Solver. Everything is collective and gives the same result on all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/base/host_vector.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/product.h"

namespace shardmat {

class NullSpaceProjector;

/// A residual of at most this times ‖ |A|·|x| ‖ cannot be told from 0: two units in the last place, 4.4e-16 in f64 and
/// 2.4e-7 in f32.
double attainable_share(ValueType type);

/// The x of an inconsistent system may grow until any residual is below the floor: only a residual of at most this times ‖b‖
/// is compared with it.
constexpr double kAttainableMost = 1e-2;

class RoundingFloor {
 public:
  /// Both outlive this object.
  RoundingFloor(DistributedMatrix& matrix, const Product& product) : matrix_(matrix), product_(product) {}

  /// ‖ |A|·|x| ‖₂ of each column, over the rows that the product does not hold. Overwrites the product's x(). Waits.
  /// REQUIRES: x in row layout of a square matrix.
  std::vector<double> norms(const DistributedVector& x, Stream& stream) const;
  /// The rows of |A|·|x| of this rank, row-major, 0 in rows that the product holds; nothing if norms() needs products,
  /// which is the same on all ranks. Overwrites the product's x(). Waits.
  std::optional<HostVector<double>> magnitudes(const DistributedVector& x, Stream& stream) const;
  /// At most norms(), by `attempts` products. Overwrites the product's x(). Waits.
  std::vector<double> lower_bounds(const DistributedVector& x, std::uint64_t attempts, Stream& stream) const;

 private:
  bool has_rows() const;

  DistributedMatrix& matrix_;
  const Product& product_;
};

/// ‖b − A·x‖₂ of each column; `project`, if any, is called with b − A·x first. Overwrites the product's x(). Waits.
std::vector<double> norms_of_residual(const Product& product, const DistributedVector& b, const DistributedVector& x,
                                      const NullSpaceProjector* project, Stream& stream);

}  // namespace shardmat
