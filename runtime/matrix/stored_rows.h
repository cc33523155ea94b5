// Consecutive rows of a rank on the device, in one format or more. All products of the matrix share them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/matrix/csr.h"
#include "kernels/matrix/statistics.h"
#include "kernels/plan.h"
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
};

class StoredRows {
 public:
  /// Rows first_row … of the rank, with the columns of its column map. `rows` lies in memory of the caller until
  /// drop_host_rows(). Nothing is stored before the first plan.
  StoredRows(std::int64_t first_row, const CsrView& rows, ValueType type);

  std::int64_t first_row() const { return first_row_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t nnz() const { return nnz_; }

  /// Kernel, layout and policy for some right-hand sides. The first plan tries all formats, as choose_remembered_plan() and
  /// SpmmTuner do; later ones run on the formats that are stored, see Conversion. Throws as these, and Error(usage) if a
  /// format is missing and the host rows are gone.
  RowPlan plan(const RowPlanRequest& request, Stream& stream);
  /// No further format can be made.
  void drop_host_rows() { host_rows_.reset(); }

  const std::vector<std::shared_ptr<Storage>>& storages() const { return storages_; }
  /// Device memory of all formats.
  std::int64_t device_bytes() const;

 private:
  std::optional<RowPlan> plan_on_stored(const RowPlanRequest& request, Stream& stream) const;
  RowPlan plan_anew(const RowPlanRequest& request, Stream& stream) const;

  std::int64_t first_row_, rows_, nnz_;
  ValueType type_;
  RowStatistics statistics_;
  std::optional<CsrView> host_rows_;
  std::vector<std::shared_ptr<Storage>> storages_;
};

}  // namespace shardmat
