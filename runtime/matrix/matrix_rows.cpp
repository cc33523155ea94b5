#include "runtime/matrix/matrix_rows.h"

#include <algorithm>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "runtime/matrix/vectors.h"

namespace shardmat {

MatrixRows::MatrixRows(CompactCsr csr, HostVector<std::int64_t> value_starts, const MatrixOptions& options, Context& context)
    : options_(options),
      context_(context),
      csr_(std::move(csr)),
      value_starts_(std::move(value_starts)),
      rows_(csr_.rows),
      nnz_(csr_.nnz()),
      updated_(context.device()) {}

void MatrixRows::require_on_host() const {
  if (!on_host())
    throw Error(
        ErrorKind::usage,
        "the matrix has no rows any more: its host rows were dropped, or were lost while its first product was made, "
        "and that failed; load it again, or keep its host rows");
}

/// `once`: the rows are not stored a second time, in other blocks.
void MatrixRows::store(std::int64_t first_row, std::int64_t end_row, bool once) {
  std::span<const std::int64_t> value_starts;
  if (options_.values == Values::updatable)
    value_starts = std::span<const std::int64_t>(value_starts_)
                       .subspan(static_cast<std::size_t>(first_row), static_cast<std::size_t>(end_row - first_row));
  // Storages may keep the arrays of the rows if no new values will come: those would change the rows, too.
  CsrView rows = options_.values == Values::fixed ? csr_.shared_view() : csr_.view();
  rows.diagonal = first_own_;
  blocks_.emplace_back(first_row, rows.rows_between(first_row, end_row), options_.type, value_starts);
  if (once && options_.host_rows == HostRows::drop && options_.values == Values::fixed &&
      context_.device().backend == Backend::host)
    blocks_.back().let_conversion_release();
}

/// Decides whether the rows are cut in two.
std::vector<RowPlan> MatrixRows::plan_first(const RowPlanRequest& request, bool may_split, std::int64_t boundary) {
  std::vector<RowPlan> plans;
  require_on_host();
  if (request.late || !may_split) {
    store(0, rows_, !may_split);
    plans.push_back(blocks_[0].plan(request, context_.stream()));
    if (!may_split || plans[0].begins_early()) return plans;
    plans.clear(), blocks_.clear();
  }
  RowPlanRequest on_time = request;
  on_time.late.reset();
  store(0, rows_ - boundary, true);
  store(rows_ - boundary, rows_, true);
  for (StoredRows& block : blocks_) plans.push_back(block.plan(on_time, context_.stream()));
  return plans;
}

std::vector<RowPlan> MatrixRows::plan(RowPlanRequest request, bool may_split, std::int64_t boundary) {
  request.before_conversion = [this] { refresh(context_.stream()); };
  if (blocks_.empty()) return plan_first(request, may_split && boundary > 0, boundary);
  std::vector<RowPlan> plans;
  for (StoredRows& block : blocks_) plans.push_back(block.plan(request, context_.stream()));
  return plans;
}

bool MatrixRows::can_transpose() const {
  return std::all_of(blocks_.begin(), blocks_.end(), [](const StoredRows& block) { return block.can_transpose(); });
}

std::vector<RowTransposePlan> MatrixRows::transpose_plans(const TransposeShape& shape, Stream& stream) {
  std::vector<RowTransposePlan> plans;
  for (StoredRows& block : blocks_)
    plans.push_back({block.first_row(), block.transpose_plan(
                                            shape,
                                            [&] {
                                              stream.wait_for(updated_);  // the map is made of the stored values
                                              refresh(stream);
                                            },
                                            stream)});
  return plans;
}

void MatrixRows::undo_first(bool none_before) {
  if (std::any_of(blocks_.begin(), blocks_.end(), [](const StoredRows& block) { return block.released(); })) csr_.clear();
  if (none_before) blocks_.clear();
}

void MatrixRows::update(const void* values, const void* on_host, ValueType type, Stream& stream) {
  for (StoredRows& block : blocks_) block.update_values(values, nnz_, type, stream);
  const bool host_follows = !stored() || (std::exchange(host_was_read_, false) && this->on_host());
  host_is_old_ = stored();
  try {
    if (host_follows) put_on_host(values, on_host, type, stream);
  } catch (const std::bad_alloc&) {
    if (!stored()) throw;  // else on_host_now() tries again, on all ranks
  }
  updated_.record(stream);
}

void MatrixRows::put_on_host(const void* values, const void* on_host, ValueType type, Stream& stream) {
  dispatch(type, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    if (on_host != nullptr) return put_on_host(std::span(static_cast<const T*>(on_host), static_cast<std::size_t>(nnz_)));
    const auto* const given = static_cast<const T*>(values);
    if (stream.device().backend == Backend::host) {
      stream.synchronize();
      return put_on_host(std::span(given, static_cast<std::size_t>(nnz_)));
    }
    HostVector<T> copy(static_cast<std::size_t>(nnz_));
    copy_to_host(copy.data(), given, copy.size() * sizeof(T), stream);
    put_on_host(std::span<const T>(copy));
  });
}

template <class T>
void MatrixRows::put_on_host(std::span<const T> values) {
  csr_.change_values([&](auto host_values) {
    using Value = typename decltype(host_values)::value_type;
    parallel_ranges(rows_, 1 << 12, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        const auto first = values.begin() + value_starts_[i];
        std::transform(first, first + (csr_.row_ptr[i + 1] - csr_.row_ptr[i]), host_values.begin() + csr_.row_ptr[i],
                       [](T value) { return static_cast<Value>(value); });
      }
    });
  });
  host_is_old_ = false;
}

/// Before rows are converted again.
void MatrixRows::refresh(Stream& stream) {
  if (!host_is_old_ || !on_host()) return;
  stream.wait_for(updated_);
  require_host_memory(16 * nnz_, "the current values of the matrix");
  HostVector<double> values(static_cast<std::size_t>(nnz_));
  parallel_ranges(nnz_, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    std::fill(values.begin() + begin, values.begin() + end, 0.0);
  });
  for (const StoredRows& block : blocks_) block.read_values(values, stream);
  put_on_host(std::span<const double>(values));
}

CsrView MatrixRows::on_host_now(Stream& stream) {
  require_on_host();
  refresh(stream);
  host_was_read_ = true;
  return csr_.view();
}

bool MatrixRows::can_write_values() const { return stored() && options_.values == Values::updatable; }

void MatrixRows::write_values(double* to, Stream& stream) const {
  stream.wait_for(updated_);
  for (const StoredRows& block : blocks_) block.write_values(to, stream);
}

bool MatrixRows::write_columns(std::int32_t* to, Stream& stream) const {
  return std::all_of(blocks_.begin(), blocks_.end(),
                     [&](const StoredRows& block) { return block.write_columns(to, stream); });
}

void MatrixRows::drop_from_host() {
  for (StoredRows& block : blocks_) block.drop_host_rows();
  if (stored()) csr_.clear();
}

std::int64_t MatrixRows::device_bytes() const {
  std::int64_t bytes = 0;
  for (const StoredRows& block : blocks_) bytes += block.device_bytes();
  return bytes;
}

std::int64_t MatrixRows::map_bytes() const {
  std::int64_t bytes = 0;
  for (const StoredRows& block : blocks_) bytes += block.map_bytes();
  return bytes;
}

std::int64_t MatrixRows::transpose_bytes() const {
  std::int64_t bytes = 0;
  for (const StoredRows& block : blocks_) bytes += block.transpose_bytes();
  return bytes;
}

}  // namespace shardmat
