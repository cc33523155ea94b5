// Rows in which vectors stay 0, so that a method works on the other rows and columns of a matrix alone.
//
// Threads: as DistributedMatrix. Nothing here is collective.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "kernels/base/dense.h"
#include "kernels/base/device.h"
#include "kernels/base/host_vector.h"
#include "kernels/base/types.h"
#include "kernels/krylov/step.h"

namespace shardmat {

class HeldRows {
 public:
  /// Holds no rows. For vectors of `columns` columns.
  explicit HeldRows(std::int64_t columns) : columns_(columns) {}

  /// `rows`: those of this rank, by their place in vectors. `count`: of all ranks. `magnitudes`: Σ|a_ij| over the other rows
  /// and columns of all ranks. Waits.
  void set(std::span<const std::int64_t> rows, std::int64_t count, double magnitudes, Stream& stream);
  /// Of all ranks; 0: nothing is held.
  std::int64_t count() const { return count_; }
  const HostVector<std::int64_t>& rows() const { return rows_; }
  double magnitudes() const { return magnitudes_; }
  /// Zeros the held rows of a row-major vector of f64 or f32, in stream order. Can be recorded in a Graph.
  void clear(const Dense& vector, Stream& stream) const;

 private:
  std::int64_t columns_;
  std::optional<krylov::Passes> passes_;  ///< none before there are rows
  std::int64_t count_ = 0;
  double magnitudes_ = 0;
  HostVector<std::int64_t> rows_;
  Buffer places_;
};

}  // namespace shardmat
