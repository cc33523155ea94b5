// Distributed vectors: n × k entries on the devices. Each rank holds the rows that a row map gives it, in the map's order.
// And what Krylov methods compute with them: dot products, norms and updates, several columns at once, scalars on the
// device.
//
// Ownership: a vector owns its entries and shares its row map; the map's context must outlive both.
// Threads: as DistributedMatrix. Collective functions say so; so are dot() and norm().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kernels/base/dense.h"
#include "kernels/base/device.h"
#include "kernels/base/host_vector.h"
#include "runtime/context/context.h"
#include "runtime/maps/row_map.h"

namespace shardmat {

class ColumnDots;
class DistributedMatrix;
class RangeRoute;
class SumOverRanks;
class VectorSource;

/// One of the two row maps of a matrix. A square matrix has one for both.
enum class VectorLayout {
  rows,     ///< as y: DistributedMatrix::y_rows()
  columns,  ///< as x: DistributedMatrix::x_rows()
};

class DistributedVector {
 public:
  /// Makes `columns` vectors of zeros, stored row-major with `columns` entries a row. Checks memory before it allocates.
  /// Collective; the same error on all ranks. The vector needs the map's context, but no matrix.
  DistributedVector(std::shared_ptr<const RowMap> map, ValueType type, std::int64_t columns = 1);
  /// On y_rows() or x_rows() of a matrix, which need not outlive the vector.
  DistributedVector(const DistributedMatrix& matrix, VectorLayout layout, ValueType type, std::int64_t columns = 1);
  DistributedVector(DistributedVector&&) noexcept = default;
  DistributedVector& operator=(DistributedVector&&) = delete;

  const std::shared_ptr<const RowMap>& map() const { return map_; }
  Context& context() const { return map_->context(); }
  /// True if its rows lie as those of `map` on all ranks.
  bool lies_on(const RowMap& map) const { return map_->number() == map.number(); }
  /// Throws Error(usage) unless the rows lie as those of `map` and the vector has these columns and this type. The message
  /// says what it has and what it must have; `what` names the vector. Not collective.
  void require_like(const RowMap& map, std::int64_t columns, ValueType type, const std::string& what) const;
  std::int64_t rows() const { return map_->size(); }              ///< of all ranks
  std::int64_t local_rows() const { return map_->local_rows(); }  ///< of this rank, on its device
  /// Rows of this rank for set_own() and own().
  std::int64_t own_rows() const { return map_->own_rows(); }
  std::int64_t columns() const { return columns_; }
  ValueType type() const { return type_; }
  /// This rank's entries on its device, for kernels and for Product::multiply().
  Dense view() const;

  /// Original index of each local row.
  const HostVector<std::int64_t>& ids() const { return map_->ids(); }

  // All functions below but fill() first wait for the stream. If an earlier product waits for a lost rank, they throw
  // Error(rank_lost) after the communicator's deadline.

  /// Sets every entry to `value`, in stream order.
  void fill(double value, Stream& stream);
  /// Reads this rank's entries from a file or another source, by original index. Collective. Throws Error(input) for values
  /// beyond the range of the type, and what the source throws.
  void read(const VectorSource& source, Stream& stream);
  /// Writes all entries in original order (write_vector()); `files`: of hypre's format. Collective; rank 0 writes.
  void write(const std::string& path, const std::string& dataset, Stream& stream, std::int64_t files = 1) const;

  /// Sets all entries from `values` of rank 0: rows() × columns() values in original order. Other ranks pass an empty span.
  /// Collective.
  void scatter(std::span<const double> values, Stream& stream);
  /// Returns all entries in original order on rank 0, and an empty vector on other ranks. Collective.
  HostVector<double> gather(Stream& stream) const;
  /// This rank's entries in the order of the source, row by row: own_rows() × columns(). For own rows these are the rows
  /// that the rank gave, in its order. Not collective, with one exception: if own rows were spread anew, entries move
  /// between ranks through host memory, and set_own() and own() are collective, with the same error on all ranks. Throws
  /// Error(usage) for another number of values, Error(input) for values beyond the range of the type.
  void set_own(std::span<const double> values, Stream& stream);
  HostVector<double> own(Stream& stream) const;
  /// The same from and to a dense matrix of the caller, in memory of the host or of the vector's device: row-major or
  /// column-major, with any leading dimension, of any type. Returns when the copy is done. The copy stays on the device if
  /// the entries lie there, are of type() and in the order of ids(). All other entries go through host memory. Products read
  /// and write entries on the device in the order of ids() without a copy: see view() and Product::multiply().
  void set_own(const ConstDense& values, Stream& stream);
  void own(const Dense& values, Stream& stream) const;

 private:
  /// The entries of the caller are those of view(), but for gaps and the order of the dense matrix.
  bool has_same_entries(const ConstDense& values) const;
  /// Runs `work`, and agrees on its errors if entries move between ranks.
  template <class F>
  auto agreed(F&& work) const;
  /// Entries in the order of the source to the device, and back.
  void put(std::span<const double> values, Stream& stream);
  HostVector<double> take(Stream& stream) const;

  std::shared_ptr<const RowMap> map_;
  ValueType type_;
  std::int64_t columns_;
  Buffer memory_;
};

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
  /// What sums over the ranks: "kernel", "NCCL" or "MPI"; "none" for one rank.
  std::string_view summed_by() const;

 private:
  std::int64_t columns_;
  std::unique_ptr<SumOverRanks> sum_;
  std::unique_ptr<ColumnDots> dots_;
};

}  // namespace shardmat
