// Dot products, norms and updates of distributed vectors for Krylov methods: several columns at once, scalars on the device.
//
// Threads: as DistributedMatrix. dot() and norm() are collective: all ranks call them in the same order.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "kernels/base/dense.h"
#include "runtime/matrix/distributed_vector.h"

namespace shardmat {

class ColumnDots;
class SumOverRanks;

/// y += a·x, each column with its own factor. Like all functions here, throws the same Error(usage) on all ranks for vectors
/// of different matrices, layouts, types or sizes.
void axpy(Factor a, const DistributedVector& x, DistributedVector& y, Stream& stream);
/// y = x + b·y.
void xpay(const DistributedVector& x, Factor b, DistributedVector& y, Stream& stream);
/// y = b·y.
void scale(Factor b, DistributedVector& y, Stream& stream);
/// y = x.
void copy(const DistributedVector& x, DistributedVector& y, Stream& stream);

/// Dot products over all ranks. Results stay on the device and are the same on every rank. They are bit-identical from run
/// to run, unless NCCL sums over the ranks (see summed_by()). After a first call, calls can be recorded in a Graph.
class VectorSums {
 public:
  /// For vectors of `columns` columns. Collective; the same error on all ranks.
  VectorSums(Context& context, std::int64_t columns);
  ~VectorSums();
  VectorSums(const VectorSums&) = delete;
  VectorSums& operator=(const VectorSums&) = delete;

  /// result[j] = Σ_i x[i, j]·y[i, j], in stream order. `result` has `columns` f64 values in device memory.
  void dot(const DistributedVector& x, const DistributedVector& y, double* result, Stream& stream);
  /// result[j] = ‖x[·, j]‖₂.
  void norm(const DistributedVector& x, double* result, Stream& stream);
  /// What sums over the ranks: SumOverRanks::name().
  std::string_view summed_by() const;

 private:
  std::int64_t columns_;
  std::unique_ptr<SumOverRanks> sum_;
  std::unique_ptr<ColumnDots> dots_;
};

}  // namespace shardmat
