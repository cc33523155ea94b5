// Vectors that lie with a distributed matrix: n × k entries on the devices, each rank's in the order of its rows or of its
// part of x.
//
// Threads: as DistributedMatrix. What is collective says so.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kernels/base/dense.h"
#include "kernels/base/device.h"
#include "kernels/base/host_vector.h"
#include "runtime/context.h"

namespace shardmat {

class DistributedMatrix;
class VectorSource;

/// Which entries a rank has, and in which order. For a square matrix both are the same.
enum class VectorLayout {
  rows,     ///< as y: DistributedMatrix::row_ids()
  columns,  ///< as x: DistributedMatrix::x_ids()
};

class DistributedVector {
 public:
  /// Zeros. `columns` vectors next to each other: row-major, `columns` entries a row. Memory is checked before it is taken.
  /// Collective; the same error on all ranks. The matrix outlives the vector.
  DistributedVector(const DistributedMatrix& matrix, VectorLayout layout, ValueType type, std::int64_t columns = 1);
  DistributedVector(DistributedVector&&) noexcept = default;
  DistributedVector& operator=(DistributedVector&&) = delete;

  const DistributedMatrix& matrix() const { return matrix_; }
  std::int64_t rows() const { return rows_; }  ///< of all ranks
  std::int64_t local_rows() const { return local_rows_; }
  std::int64_t columns() const { return columns_; }
  ValueType type() const { return type_; }
  VectorLayout layout() const { return layout_; }
  /// This rank's entries on its device, for kernels and for Product::multiply().
  Dense view() const;

  /// Original index of each local row.
  const HostVector<std::int64_t>& ids() const;

  /// Every entry becomes `value`, in stream order.
  void fill(double value, Stream& stream);
  /// Entries from a file or another source of rows, by original index. Collective. Throws Error(input) for values beyond the
  /// range of the type, and what the source throws.
  void read(const VectorSource& source, Stream& stream);
  /// Writes all entries in original order (vectors.h). Collective; rank 0 writes.
  void write(const std::string& path, const std::string& dataset, Stream& stream) const;

  /// All entries from rank 0, where `values` are rows() × columns() in original order; other ranks give none. Collective.
  void scatter(std::span<const double> values, Stream& stream);
  /// The opposite: all entries on rank 0, nothing elsewhere. Collective.
  HostVector<double> gather(Stream& stream) const;
  /// This rank's entries in the order of the source (for own rows: the order in which they were given), row by row.
  /// Throws Error(usage) for another number of values. Not collective.
  void set_own(std::span<const double> values, Stream& stream);
  HostVector<double> own(Stream& stream) const;

 private:
  /// For each local row its place in the source's order, counted from this rank's first.
  std::span<const std::int64_t> places() const;

  const DistributedMatrix& matrix_;
  VectorLayout layout_;
  ValueType type_;
  std::int64_t rows_, local_rows_, columns_;
  Buffer memory_;
};

}  // namespace shardmat
