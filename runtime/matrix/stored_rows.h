// Consecutive rows of a rank on the device, in one format or more. All products of the matrix share them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/matrix/csr.h"
#include "kernels/matrix/statistics.h"
#include "kernels/plan.h"
#include "kernels/value_map.h"
#include "runtime/matrix/plan_cache.h"
#include "runtime/matrix/row_plan.h"

namespace shardmat {

/// May a plan convert the rows into a format that is not stored yet?
enum class Conversion {
  if_needed,  ///< only where no kernel runs on the formats that are stored
  if_faster,  ///< every format that promises something is tried, as for the first plan
};

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
  /// Rows first_row … of the rank, with the columns of its column map. `rows` lies in memory of the caller until
  /// drop_host_rows(). Nothing is stored before the first plan. `value_starts`: where the values of each row begin among the
  /// values that update_values() takes; empty if there will be none. It lives as long as this.
  StoredRows(std::int64_t first_row, const CsrView& rows, ValueType type, std::span<const std::int64_t> value_starts);

  std::int64_t first_row() const { return first_row_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t nnz() const { return nnz_; }

  /// Kernel, layout and policy for some right-hand sides. The first plan tries all formats, as choose_remembered_plan() and
  /// SpmmTuner do; later ones run on the formats that are stored, see Conversion. Throws as these, and Error(usage) if a
  /// format is missing and the host rows are gone.
  RowPlan plan(const RowPlanRequest& request, Stream& stream);
  /// Puts new values into every format, in stream order; f64 or f32 in memory of the device. REQUIRES: value_starts, and
  /// values for all rows of the rank that are in the type's range.
  void update_values(const void* values, std::int64_t count, ValueType values_type, Stream& stream);
  /// Adds the values that are stored now to `values`, in the order of update_values(). REQUIRES: a plan was made.
  void read_values(std::span<double> values, Stream& stream) const;
  /// No further format can be made.
  void drop_host_rows() { host_rows_.reset(); }

  /// Device memory of all formats, and of the maps that new values are put in with.
  std::int64_t device_bytes() const;
  std::int64_t map_bytes() const;

 private:
  std::optional<RowPlan> plan_on_stored(const RowPlanRequest& request, Stream& stream) const;
  RowPlan plan_anew(const RowPlanRequest& request, Stream& stream) const;
  void keep(const std::shared_ptr<Storage>& storage, Stream& stream);

  std::int64_t first_row_, rows_, nnz_;
  ValueType type_;
  RowStatistics statistics_;
  std::optional<CsrView> host_rows_;
  std::span<const std::int64_t> value_starts_;
  std::vector<std::shared_ptr<Storage>> storages_;
  std::vector<ValueMap> maps_;  ///< one a storage, or none
};

}  // namespace shardmat
