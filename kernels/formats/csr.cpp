#include "kernels/formats/csr.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/base/error.h"
#include "kernels/formats/kept_upload.h"
#include "kernels/formats/upload.h"

namespace shardmat {
namespace {

/// Kernels step up to 8·32 entries past the end of a row, and that offset must fit, too.
bool needs_wide_offsets(const CsrView& matrix) { return matrix.nnz() > std::numeric_limits<std::int32_t>::max() - 256; }

/// True if the storage can use the columns and values of the matrix as they are.
bool shares_arrays(const ConversionInput& input) {
  const CsrView& matrix = input.matrix();
  if (matrix.owner == nullptr || input.stream().device().backend != Backend::host || !matrix.col_idx.is_narrow())
    return false;
  return input.type() == (matrix.values.is_narrow() ? ValueType::f32 : ValueType::f64);
}

template <class View>
Buffer share(const CsrView& matrix, const View& array) {
  return array.visit(
      [&](const auto& entries) { return Buffer::shared(matrix.owner, entries.data(), entries.size_bytes()); });
}

}  // namespace

std::int64_t csr_bytes(ConversionInput& input, const Policy&) {
  const CsrView& matrix = input.matrix();
  return (needs_wide_offsets(matrix) ? 8 : 4) * (matrix.rows + 1) + (4 + input.value_bytes()) * matrix.nnz();
}

std::int64_t csr_bytes_to_allocate(ConversionInput& input) {
  return csr_bytes(input, {}) - (shares_arrays(input) ? (4 + input.value_bytes()) * input.matrix().nnz() : 0);
}

std::shared_ptr<Storage> convert_csr(ConversionInput& input, const Policy& layout) {
  const CsrView& matrix = input.matrix();
  Stream& stream = input.stream();
  auto csr = std::make_shared<CsrStorage>();
  csr->describe(input, csr_bytes(input, layout));
  csr->wide_offsets = needs_wide_offsets(matrix);

  const std::int64_t* offsets = matrix.row_ptr.data();
  const std::int64_t first = matrix.rows == 0 ? 0 : offsets[0];
  const auto offset = [=](std::int64_t i) { return offsets == nullptr ? 0 : offsets[i] - first; };
  csr->row_ptr = csr->wide_offsets ? upload<std::int64_t>(matrix.rows + 1, stream, offset)
                                   : upload<std::int32_t>(matrix.rows + 1, stream, offset);
  if (shares_arrays(input)) {
    csr->col_idx = share(matrix, matrix.col_idx);
    csr->values = share(matrix, matrix.values);
    return csr;
  }
  const ColumnPointer columns = matrix.col_idx.data();
  csr->col_idx = upload<std::int32_t>(csr->nnz, stream, [=](std::int64_t k) { return columns[k]; });
  csr->values = Buffer(csr->device, static_cast<std::size_t>(csr->nnz) * size_of(csr->type));
  update_csr(*csr, input);
  return csr;
}

void update_csr(Storage& storage, ConversionInput& input) {
  auto& csr = static_cast<CsrStorage&>(storage);
  if (csr.values.is_shared()) throw Error(ErrorKind::internal, "new values came for a matrix whose values are shared");
  const ValuePointer values = input.matrix().values.data();
  require_in_range(csr.type, input.matrix().values, "the matrix's values");
  dispatch_operands(csr.type, [&](auto tag, auto) {
    using T = typename decltype(tag)::type;
    fill<T>(csr.values, csr.nnz, input.stream(), [=](std::int64_t k) { return values[k]; });
  });
}

int threads_per_row_by_formula(const RowStatistics& rows) {
  if (rows.mean_row < 2) return 1;
  const auto mean = static_cast<std::uint64_t>(std::min(rows.mean_row, 32.0));
  return static_cast<int>(std::bit_floor(mean));
}

std::vector<Policy> csr_vector_policies(const RowStatistics& rows) {
  const auto policy = [](int threads) { return Policy{{"threads_per_row", threads}, {"block_size", 256}}; };
  // A quarter of the formula's, because a thread holds eight nonzeros at once; then its neighbours.
  const int first = std::max(1, threads_per_row_by_formula(rows) / 4);
  std::vector<Policy> all{policy(first)};
  for (int factor = 2; factor <= 32; factor *= 2) {
    if (first * factor <= 32) all.push_back(policy(first * factor));
    if (first / factor >= 1) all.push_back(policy(first / factor));
  }
  return all;
}

bool csr_vector_in_order(ValueType type, const Policy&, const Policy& policy) {
  return !is_half(type) && policy.at("threads_per_row") == 8;
}

std::vector<Policy> csr_balanced_policies(const RowStatistics&) {
  const auto policy = [](int items, int hint, int block_size) {
    return Policy{{"items", items}, {"hint", hint}, {"block_size", block_size}};
  };
  return {policy(8, 2, 256), policy(8, 0, 256), policy(4, 2, 256), policy(4, 0, 256), policy(8, 2, 128), policy(16, 2, 256)};
}

std::vector<Policy> csr_segmented_policies(const RowStatistics& rows) {
  const auto policy = [](int items, int steps, int hint, int hub_kb) {
    return Policy{{"items", items}, {"steps", steps}, {"hint", hint}, {"hub_kb", hub_kb}};
  };
  // Where a few rows are very long, as a rule a few columns are, too: hubs, worth keeping in shared memory.
  if (static_cast<double>(rows.max_row) > 100 * rows.mean_row)
    return {policy(8, 4, 2, 144), policy(8, 1, 2, 96), policy(8, 1, 2, 0), policy(8, 4, 2, 0), policy(8, 4, 0, 144)};
  return {policy(8, 1, 2, 0), policy(8, 4, 2, 0), policy(8, 4, 0, 0), policy(8, 4, 2, 144), policy(8, 1, 2, 96)};
}

bool csr_segmented_in_order(ValueType, const Policy&, const Policy& policy) {
  return policy.at("items") == 8 && policy.at("steps") == 1;
}
bool csr_balanced_spmm_in_order(ValueType type, const Policy&, const Policy& policy) {
  return !is_half(type) && policy.at("exact") == 1;
}

std::vector<Policy> csr_scalar_policies(const RowStatistics&) { return {Policy{{"block_size", 128}}}; }

std::vector<Policy> csr_cusparse_policies(const RowStatistics&) {
  return {Policy{{"algorithm", 1}}, Policy{{"algorithm", 2}}};
}

// These two members of ConversionInput lie here, because conversion.cpp knows no format.

void ConversionInput::replace_values(const ValueView& values) {
  if (values.size() != matrix_.values.size())
    throw Error(ErrorKind::internal, fmt::format("{} values cannot replace {}", values.size(), matrix_.values.size()));
  matrix_.values = values;
  matrix_.owner = nullptr, matrix_.release = nullptr;  // of the old values
  ascending_.reset();
  if (csr_) update_csr(*csr_, *this);
}

ConversionInput::ConversionInput(std::shared_ptr<CsrStorage> on_device, Stream& stream)
    : type_(on_device->type), stream_(stream), csr_(std::move(on_device)) {
  matrix_.rows = csr_->rows, matrix_.cols = csr_->cols;
}

std::int64_t ConversionInput::nnz() const { return matrix_.row_ptr.empty() && csr_ ? csr_->nnz : matrix_.nnz(); }

std::shared_ptr<CsrStorage> ConversionInput::csr() {
  if (!csr_) {
    require_memory(stream_.device(), csr_bytes_to_allocate(*this), "the matrix in format csr");
    csr_ = std::static_pointer_cast<CsrStorage>(convert_csr(*this, {}));
    KeptUpload::keep(matrix_, csr_);
  }
  return csr_;
}

}  // namespace shardmat
