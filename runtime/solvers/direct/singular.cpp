#include "runtime/solvers/direct/singular.h"

#include <cmath>

#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/solvers/direct/report.h"
#include "runtime/solvers/loop/random_entries.h"

namespace shardmat::direct {

bool looks_singular(const Preconditioner& m, std::int64_t known, const Product& product, const RoundingFloor& floor,
                    Stream& stream) {
  constexpr double kSingular = 1e14;
  const DistributedMatrix& matrix = product.matrix();
  if (matrix.rows() == 0) return false;
  if (m.direct()->null_pivots > known) return true;
  DistributedVector r(matrix, VectorLayout::rows, sum_type(matrix.type()), product.columns()),
      z(matrix, VectorLayout::rows, r.type(), r.columns());
  fill_random(r, 1, Entries::signs, stream);
  product.clear_held(r.view(), stream);
  m.project(r.view(), stream);
  m.apply(r.view(), z.view(), stream);
  return !(floor.norms(z, stream).front() < kSingular * std::sqrt(static_cast<double>(matrix.rows())));
}

}  // namespace shardmat::direct
