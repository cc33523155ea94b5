// Consecutive rows of a rank on the device, stored in one or more formats. All products of the matrix share them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/choose/column_entries.h"
#include "kernels/choose/value_map.h"
#include "kernels/matrix/csr.h"
#include "kernels/matrix/row_release.h"
#include "kernels/matrix/statistics.h"
#include "kernels/plan.h"
#include "kernels/transpose_plan.h"
#include "runtime/matrix/matrix_options.h"
#include "runtime/matrix/plan_cache.h"
#include "runtime/matrix/row_plan.h"

namespace shardmat {

/// What a plan is chosen for.
struct RowPlanRequest {
  std::int64_t right_hand_sides = 1;
  Conversion conversion = Conversion::if_needed;
  PlanRequest plan;
  PlanCache cache;
  std::optional<LateX> late;
  std::function<void()> before_conversion = {};  ///< called before the host rows are read
};

class StoredRows {
 public:
  /// Takes the rank's rows from first_row on, with columns renumbered by its column map. The caller keeps `rows` alive until
  /// drop_host_rows(). The rows are stored when the first plan is made. `value_starts[i]`: index of the first value of row i
  /// in the values of update_values(); empty if update_values() is never called. The caller keeps it alive.
  StoredRows(std::int64_t first_row, const CsrView& rows, ValueType type, std::span<const std::int64_t> value_starts);

  std::int64_t first_row() const { return first_row_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t nnz() const { return nnz_; }

  /// Nobody needs the rows after the first plan is made: if it takes one conversion, that may release the memory of `rows`
  /// row by row, and then drops them. REQUIRES: no plan yet, no value_starts, and rows as RowRelease asks for.
  void let_conversion_release();
  /// True once memory of the rows was released, even if no plan was made: the caller must not read them.
  bool released() const { return release_ != nullptr && release_->began(); }

  /// Chooses kernel, layout and policy. The first plan tries all formats with choose_remembered_plan() or SpmmTuner; later
  /// plans use the stored formats (see Conversion). Throws as these two, and Error(usage) if a new format is needed and the
  /// host rows were dropped.
  RowPlan plan(const RowPlanRequest& request, Stream& stream);
  /// A transposed product of the stored rows, preferably on a format that can do it as it lies; else with a map of the
  /// columns, which the first call makes. `before_reading` is called before that reads the host rows. REQUIRES: a plan was
  /// made. Throws Error(usage) if the map is needed and the host rows were dropped, Error(resources).
  std::unique_ptr<TransposePlan> transpose_plan(const TransposeShape& shape, const std::function<void()>& before_reading,
                                                Stream& stream);
  /// False: transpose_plan() would throw Error(usage).
  bool can_transpose() const;
  /// Stores new values in every format, in stream order. `values` is f64 or f32 in device memory. REQUIRES: value_starts was
  /// given; `values` has the values of all rows of the rank, all in the type's range.
  void update_values(const void* values, std::int64_t count, ValueType values_type, Stream& stream);
  /// Adds the stored values to `values`, in the order of update_values(). REQUIRES: a plan was made.
  void read_values(std::span<double> values, Stream& stream) const;
  /// As ValueMap::write_values(). REQUIRES: as read_values().
  void write_values(double* to, Stream& stream) const;
  /// As ValueMap::write_columns(). REQUIRES: as read_values().
  bool write_columns(std::int32_t* to, Stream& stream) const;
  /// After this call no further format can be stored.
  void drop_host_rows() { host_rows_.reset(); }

  /// Device memory of all formats, map_bytes() and transpose_bytes() included.
  std::int64_t device_bytes() const;
  /// Device memory of the maps for new values.
  std::int64_t map_bytes() const;
  /// Device memory of the map of the columns.
  std::int64_t transpose_bytes() const { return columns_ != nullptr ? columns_->bytes() : 0; }

 private:
  std::optional<RowPlan> plan_on_stored(const RowPlanRequest& request, Stream& stream) const;
  RowPlan plan_anew(const RowPlanRequest& request, Stream& stream) const;
  void keep(const std::shared_ptr<Storage>& storage, Stream& stream);

  std::int64_t first_row_, rows_, nnz_;
  ValueType type_;
  RowStatistics statistics_;
  std::optional<CsrView> host_rows_;
  std::unique_ptr<RowRelease> release_;  ///< of host_rows_; null: they stay
  std::span<const std::int64_t> value_starts_;
  std::vector<std::shared_ptr<Storage>> storages_;
  std::vector<ValueMap> maps_;                    ///< one for each storage; none without value_starts
  std::shared_ptr<const ColumnEntries> columns_;  ///< of the first storage, for transposed products; null: not needed yet
};

}  // namespace shardmat
