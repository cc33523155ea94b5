#include "runtime/solvers/direct/singular.h"

#include <algorithm>
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

Singular looks_singular(const Preconditioner& m, std::int64_t known, const Product& product, const RoundingFloor& floor,
                        Stream& stream) {
  const DistributedMatrix& matrix = product.matrix();
  constexpr double kSingular = 1e14;
  const double doubtful = kAttainableMost / unit_roundoff(sum_type(matrix.type()));
  const auto judge = [&](double growth) {  // NaN is singular
    return !(growth < kSingular) ? Singular::yes : !(growth < doubtful) ? Singular::perhaps : Singular::no;
  };
  if (matrix.rows() == 0) return Singular::no;
  if (m.direct()->null_pivots > known) return Singular::yes;
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
  if (!rows) return judge(floor.norms(z, stream).front() / std::sqrt(static_cast<double>(matrix.rows())));
  const HostVector<double> grown = floor.magnitudes(z, stream).value();
  Singular worst = Singular::no;
  for (std::size_t i = 0; i < grown.size(); ++i)
    if ((*rows)[i] > 0) worst = std::max(worst, judge(grown[i] / (*rows)[i]));
  return static_cast<Singular>(ranks.all_reduce(static_cast<int>(worst), Reduction::max));
}

}  // namespace shardmat::direct
