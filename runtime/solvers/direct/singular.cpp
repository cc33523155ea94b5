#include "runtime/solvers/direct/singular.h"

#include <cmath>
#include <optional>

#include "comm/communicator.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/vectors.h"
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
  z.fill(1, stream);
  const std::optional<HostVector<double>> rows = floor.magnitudes(z, stream);
  fill_random(r, 1, Entries::signs, stream);
  Communicator& ranks = matrix.context().communicator();
  if (rows)
    ranks.run_agreed([&] {
      HostVector<double> values = to_host(r.view().data, std::ssize(*rows), r.type(), stream);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] *= (*rows)[i];
      to_device(r.view().data, values, r.type(), stream);
    });
  product.clear_held(r.view(), stream);
  m.project(r.view(), stream);
  m.apply(r.view(), z.view(), stream);
  if (!rows) return !(floor.norms(z, stream).front() < kSingular * std::sqrt(static_cast<double>(matrix.rows())));
  const HostVector<double> grown = floor.magnitudes(z, stream).value();
  bool singular = false;
  for (std::size_t i = 0; i < grown.size(); ++i)
    singular = singular || ((*rows)[i] > 0 && !(grown[i] < kSingular * (*rows)[i]));
  return ranks.all_reduce(singular ? 1 : 0, Reduction::max) == 1;
}

}  // namespace shardmat::direct
