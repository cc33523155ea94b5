#include "runtime/matrix/stored_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/choose/stored_plans.h"
#include "kernels/conversion.h"

namespace shardmat {
namespace {

SpmmRequest spmm_request(const PlanRequest& request) {
  SpmmRequest wanted;
  wanted.kernel = request.kernel;
  wanted.policy = request.policy;
  wanted.measure = request.measure;
  wanted.reproducible = request.reproducible;
  wanted.products = request.products;
  return wanted;
}

}  // namespace

StoredRows::StoredRows(std::int64_t first_row, const CsrView& rows, ValueType type)
    : first_row_(first_row),
      rows_(rows.rows),
      nnz_(rows.nnz()),
      type_(type),
      statistics_(row_statistics(rows.row_ptr)),
      host_rows_(rows) {}

std::optional<RowPlan> StoredRows::plan_on_stored(const RowPlanRequest& request, Stream& stream) const {
  const std::int64_t width = request.right_hand_sides;
  if (width == 1) {
    if (auto chosen = choose_stored_plan(storages_, statistics_, request.plan, stream))
      return RowPlan(first_row_, std::move(*chosen));
  } else if (auto chosen =
                 choose_stored_spmm_plan(storages_, width, spmm_request(request.plan), request.late, stream)) {
    return RowPlan(first_row_, width, std::move(*chosen));
  }
  return std::nullopt;
}

RowPlan StoredRows::plan_anew(const RowPlanRequest& request, Stream& stream) const {
  const std::int64_t width = request.right_hand_sides;
  if (width == 1) return {first_row_, choose_remembered_plan(*host_rows_, type_, request.plan, request.cache, stream)};
  ConversionInput input(*host_rows_, type_, stream);
  return {first_row_, width, SpmmTuner(input, request.late).choose({width}, spmm_request(request.plan))};
}

RowPlan StoredRows::plan(const RowPlanRequest& request, Stream& stream) {
  const bool stored_do = request.conversion == Conversion::if_needed || !host_rows_;
  if (stored_do && !storages_.empty())
    if (std::optional<RowPlan> plan = plan_on_stored(request, stream)) return std::move(*plan);
  if (!host_rows_) {
    std::string formats;
    for (const auto& storage : storages_) formats += (formats.empty() ? "" : ", ") + storage->format;
    throw Error(ErrorKind::usage,
                fmt::format("no kernel that was allowed runs on the matrix as it is stored ({}) with {} right-hand sides, and "
                            "its host rows were dropped; keep them, or make this product before dropping them",
                            formats.empty() ? "not at all" : formats, request.right_hand_sides));
  }
  RowPlan plan = plan_anew(request, stream);
  const std::shared_ptr<Storage> made = plan.shared_storage();
  const auto same = std::find_if(storages_.begin(), storages_.end(), [&](const auto& storage) {
    return storage->format == made->format && storage->layout == made->layout;
  });
  if (same != storages_.end()) {
    plan.move_to(*same, stream);
  } else {
    if (request.late && !made->expects_late) made->expect_late(request.late->first, stream);
    storages_.push_back(made);
  }
  return plan;
}

std::int64_t StoredRows::device_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& storage : storages_) bytes += storage->bytes;
  return bytes;
}

}  // namespace shardmat
