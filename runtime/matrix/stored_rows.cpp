#include "runtime/matrix/stored_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "kernels/base/error.h"
#include "kernels/base/host_vector.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/choose/stored_plans.h"
#include "kernels/choose/transpose_list.h"
#include "kernels/conversion.h"

namespace shardmat {
namespace {

SpmmRequest spmm_request(const PlanRequest& request) {
  SpmmRequest wanted;
  wanted.kernel = request.kernel;
  wanted.policy = request.policy;
  wanted.tune = request.tune;
  wanted.measure = request.measure;
  wanted.reproducible = request.reproducible;
  wanted.same_bits = request.same_bits;
  wanted.products = request.products;
  wanted.storage = request.storage;
  return wanted;
}

}  // namespace

StoredRows::StoredRows(std::int64_t first_row, const CsrView& rows, ValueType type,
                       std::span<const std::int64_t> value_starts)
    : first_row_(first_row),
      rows_(rows.rows),
      nnz_(rows.nnz()),
      type_(type),
      statistics_(row_statistics(rows.row_ptr)),
      host_rows_(rows),
      value_starts_(value_starts) {}

void StoredRows::let_conversion_release() {
  release_ = std::make_unique<RowRelease>(*host_rows_);
  host_rows_->release = release_.get();
}

std::optional<RowPlan> StoredRows::plan_on_stored(const RowPlanRequest& request, Stream& stream) const {
  const std::int64_t width = request.right_hand_sides;
  if (width == 1) {
    if (auto chosen = choose_stored_plan(storages_, statistics_, request.plan, stream))
      return RowPlan(first_row_, std::move(*chosen));
  } else if (auto chosen = choose_stored_spmm_plan(storages_, width, spmm_request(request.plan), request.late, stream)) {
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
    throw Error(
        ErrorKind::usage,
        fmt::format("no kernel that was allowed runs on the matrix as it is stored ({}) with {} right-hand sides, and "
                    "its host rows were dropped; keep them, or make this product before dropping them",
                    formats.empty() ? "not at all" : formats, request.right_hand_sides));
  }
  if (request.before_conversion) request.before_conversion();
  RowPlan plan = plan_anew(request, stream);
  if (released()) drop_host_rows();
  const std::shared_ptr<Storage> made = plan.shared_storage();
  const auto same = std::find_if(storages_.begin(), storages_.end(), [&](const auto& storage) {
    return storage->format == made->format && storage->layout == made->layout;
  });
  if (same != storages_.end()) {
    plan.move_to(*same, stream);
  } else {
    if (request.late && !made->expects_late) made->expect_late(request.late->first, stream);
    keep(made, stream);
  }
  return plan;
}

std::unique_ptr<TransposePlan> StoredRows::transpose_plan(const TransposeShape& shape,
                                                          const std::function<void()>& before_reading, Stream& stream) {
  const auto as_stored =
      std::find_if(storages_.begin(), storages_.end(), [](const auto& storage) { return transposes_as_stored(*storage); });
  if (as_stored != storages_.end()) return make_transpose_plan(*as_stored, shape);
  const std::shared_ptr<Storage>& storage = storages_.front();
  if (columns_ == nullptr) {
    if (!host_rows_)
      throw Error(ErrorKind::usage,
                  fmt::format("a transposed product of a matrix in format {} needs a map of its columns, which is made from "
                              "the host rows, and these were dropped; keep them, or make a transposed product before",
                              storage->format));
    before_reading();
    CsrView rows = *host_rows_;
    rows.owner = nullptr, rows.release = nullptr;  // nothing is shared with arrays whose values the map replaces
    ConversionInput input(rows, type_, stream);
    columns_ = std::make_shared<const ColumnEntries>(*storage, input);
  }
  return make_transpose_plan(storage, columns_, shape);
}

bool StoredRows::can_transpose() const {
  return host_rows_ || columns_ != nullptr ||
         std::any_of(storages_.begin(), storages_.end(), [](const auto& storage) { return transposes_as_stored(*storage); });
}

/// With a map for new values, if there may be any.
void StoredRows::keep(const std::shared_ptr<Storage>& storage, Stream& stream) {
  if (!value_starts_.empty()) {
    require_host_memory(8 * nnz_, "the places of the values");
    HostVector<std::int64_t> positions(static_cast<std::size_t>(nnz_));
    const CsrView& rows = *host_rows_;
    parallel_ranges(rows_, 1 << 12, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
        std::iota(positions.begin() + (rows.row_ptr[i] - rows.row_ptr[0]),
                  positions.begin() + (rows.row_ptr[i + 1] - rows.row_ptr[0]), value_starts_[i]);
    });
    ConversionInput input(rows, type_, stream);
    maps_.emplace_back(*storage, input, positions);
  }
  storages_.push_back(storage);
}

void StoredRows::update_values(const void* values, std::int64_t count, ValueType values_type, Stream& stream) {
  for (std::size_t i = 0; i < maps_.size(); ++i) maps_[i].update(*storages_[i], values, count, values_type, stream);
}

void StoredRows::read_values(std::span<double> values, Stream& stream) const {
  if (maps_.empty()) return;  // no rows
  const HostVector<double> mine = maps_.front().read(*storages_.front(), stream);
  parallel_ranges(std::ssize(mine), 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    std::transform(mine.begin() + begin, mine.begin() + end, values.begin() + begin, values.begin() + begin, std::plus<>());
  });
}

void StoredRows::write_values(double* to, Stream& stream) const {
  if (!maps_.empty()) maps_.front().write_values(*storages_.front(), to, stream);
}

bool StoredRows::write_columns(std::int32_t* to, Stream& stream) const {
  return maps_.empty() || maps_.front().write_columns(*storages_.front(), to, stream);
}

std::int64_t StoredRows::device_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& storage : storages_) bytes += storage->bytes;
  return bytes + map_bytes() + transpose_bytes();
}

std::int64_t StoredRows::map_bytes() const {
  std::int64_t bytes = 0;
  for (const ValueMap& map : maps_) bytes += map.bytes();
  return bytes;
}

}  // namespace shardmat
