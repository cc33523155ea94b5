// Sums and updates of distributed vectors, as Krylov methods need them: several columns at once, scalars on the device.
//
// Threads: one at a time. dot() and norm() are collective: all ranks call them in the same order.
#pragma once

#include <cstdint>
#include <string_view>

#include "comm/sum_over_ranks.h"
#include "kernels/vector.h"
#include "runtime/matrix/distributed_vector.h"

namespace shardmat {

/// y += a·x, each column with its factor. Throws Error(usage), on all ranks alike, for vectors of different matrices,
/// layouts, types or sizes, as all here.
void axpy(Factor a, const DistributedVector& x, DistributedVector& y, Stream& stream);
/// y = x + b·y.
void xpay(const DistributedVector& x, Factor b, DistributedVector& y, Stream& stream);
/// y = b·y.
void scale(Factor b, DistributedVector& y, Stream& stream);
/// y = x.
void copy(const DistributedVector& x, DistributedVector& y, Stream& stream);

/// Dot products over all ranks. Results stay on the device, can be recorded in a Graph after a first call, are the same on
/// every rank, and bit-identical from run to run (unless the sum over the ranks is NCCL's, see summed_by()).
class VectorSums {
 public:
  /// For vectors of `columns` columns. Collective; the same error on all ranks.
  VectorSums(Context& context, std::int64_t columns);

  /// result[j] = Σ_i x[i, j]·y[i, j]: `columns` f64 values in memory of the device, in stream order.
  void dot(const DistributedVector& x, const DistributedVector& y, double* result, Stream& stream);
  /// result[j] = ‖x[·, j]‖₂.
  void norm(const DistributedVector& x, double* result, Stream& stream);
  /// As SumOverRanks::name().
  std::string_view summed_by() const { return sum_.name(); }

 private:
  std::int64_t columns_;
  SumOverRanks sum_;
  ColumnDots dots_;
};

}  // namespace shardmat
