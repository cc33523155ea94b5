// A rank's rows: in host memory until they are dropped, and on the device in the formats that products asked for.
//
// Threads: as DistributedMatrix. Nothing here is collective.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/base/host_vector.h"
#include "kernels/matrix/compact_csr.h"
#include "runtime/context/context.h"
#include "runtime/matrix/matrix_options.h"
#include "runtime/matrix/row_transpose_plan.h"
#include "runtime/matrix/stored_rows.h"

namespace shardmat {

class MatrixRows {
 public:
  /// `value_starts`: as LoadedPart. Keeps the reference to the options.
  MatrixRows(CompactCsr csr, HostVector<std::int64_t> value_starts, const MatrixOptions& options, Context& context);

  std::int64_t count() const { return rows_; }
  std::int64_t nnz() const { return nnz_; }
  /// Where the values of each row begin among those of update().
  const HostVector<std::int64_t>& value_starts() const { return value_starts_; }

  bool on_host() const { return !csr_.row_ptr.empty(); }
  /// Throws Error(usage) unless they are in host memory.
  void require_on_host() const;
  /// In host memory, with the values of the last update(). Throws as require_on_host().
  CsrView on_host_now(Stream& stream);
  /// The same with the values that are there, which may be older.
  CsrView view() const { return csr_.view(); }
  /// For the map that numbers the columns: before the rows are stored.
  CompactCsr& before_storing() { return csr_; }
  /// Place of the first entry of x that this rank owns, among the columns.
  void set_first_own(std::int64_t place) { first_own_ = place; }
  /// Frees host memory, unless no product was planned: the first one needs the rows.
  void drop_from_host();

  /// In a format on the device: a product was planned.
  bool stored() const { return !blocks_.empty(); }
  /// Plans for all rows on the formats at hand. The first call stores the rows, in two blocks if that is better and
  /// `may_split`: the last `boundary` rows in the second one. If it throws, undo_first() follows on all ranks.
  std::vector<RowPlan> plan(RowPlanRequest request, bool may_split, std::int64_t boundary);
  void undo_first(bool none_before);
  /// False: what transpose_plans() needs was dropped.
  bool can_transpose() const;
  /// Plans of transposed products for all rows on the formats at hand. Waits. REQUIRES: stored().
  std::vector<RowTransposePlan> transpose_plans(const TransposeShape& shape, Stream& stream);

  /// New values, f64 or f32 in device memory, in stream order: into every format. Into host memory, too, which waits, before
  /// a product was planned, and if on_host_now() read the values of the last update. `on_host`: the same values in host
  /// memory; null: they are not there.
  void update(const void* values, const void* on_host, ValueType type, Stream& stream);

  /// True: write_values() may be called.
  bool can_write_values() const;
  /// Writes the values of the last update() to device memory, in stream order and in the order of update(). Not by way of
  /// the host rows, and they do not follow update() for it.
  void write_values(double* to, Stream& stream) const;

  /// Writes the columns of these values to device memory, in the same order. False: a format on the device cannot tell them.
  /// REQUIRES: can_write_values().
  bool write_columns(std::int32_t* to, Stream& stream) const;

  std::int64_t device_bytes() const;
  std::int64_t map_bytes() const;
  std::int64_t transpose_bytes() const;
  std::int64_t host_bytes() const { return csr_.bytes(); }

 private:
  std::vector<RowPlan> plan_first(const RowPlanRequest& request, bool may_split, std::int64_t boundary);
  void store(std::int64_t first_row, std::int64_t end_row, bool once);
  void refresh(Stream& stream);
  void put_on_host(const void* values, const void* on_host, ValueType type, Stream& stream);
  template <class T>
  void put_on_host(std::span<const T> values);

  const MatrixOptions& options_;
  Context& context_;
  CompactCsr csr_;
  HostVector<std::int64_t> value_starts_;
  std::int64_t rows_, nnz_, first_own_ = 0;
  bool host_is_old_ = false;        ///< the host rows do not have the values of the last update()
  bool host_was_read_ = false;      ///< by on_host_now(), since then: it will be again
  Event updated_;                   ///< the last update() is complete
  std::vector<StoredRows> blocks_;  ///< one, or two if the first product cut the rows
};

}  // namespace shardmat
