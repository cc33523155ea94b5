#include "kernels/batched/device_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"

namespace shardmat {
namespace {

std::int32_t take(std::span<const std::int64_t> from, std::vector<std::int32_t>& to, const char* what) {
  if (from.empty()) return 0;
  std::int64_t most = 0;
  if (from.back() - from.front() > BatchOffsets::most)
    throw Error(ErrorKind::resources,
                fmt::format("a batch with {} {} is too large for 32-bit offsets; multiply it in several "
                            "parts or on more ranks",
                            from.back() - from.front(), what));
  to.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::int64_t length = i == 0 ? 0 : from[i] - from[i - 1];
    if (length < 0)
      throw Error(ErrorKind::input, fmt::format("matrix {} of the batch ends before it begins: its {} go from {} to {}",
                                                i - 1, what, from[i - 1], from[i]));
    most = std::max(most, length);
    to[i] = static_cast<std::int32_t>(from[i] - from[0]);
  }
  return static_cast<std::int32_t>(most);
}

template <class To, class Entry>
void fill(std::byte* place, std::int64_t count, const Entry& entry) {
  To* out = reinterpret_cast<To*>(place);
  parallel_ranges(count, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) out[i] = static_cast<To>(entry(static_cast<std::size_t>(i)));
  });
}

std::shared_ptr<StoredBatch> store(const PackedBatch& packed, Stream& stream) {
  require_memory(stream.device(), static_cast<std::int64_t>(packed.bytes()), "the batch");
  Buffer memory(stream.device(), packed.bytes());
  if (stream.device().backend == Backend::host) {
    packed.write(memory.as<std::byte>());
  } else {
    HostBuffer block;
    block.reserve(packed.bytes(), stream.device(), false);
    packed.write(block.as<std::byte>());
    copy_to_device(memory.data(), block.data(), packed.bytes(), stream);
  }
  auto stored = std::make_shared<StoredBatch>();
  static_cast<DeviceBatch&>(*stored) = packed.at(stream.device(), memory.data());
  stored->memory = std::move(memory);
  return stored;
}

}  // namespace

BatchOffsets::BatchOffsets(std::span<const std::int64_t> rows, std::span<const std::int64_t> cols,
                           std::span<const std::int64_t> entries) {
  if (rows.size() != cols.size() || rows.size() != entries.size())
    throw Error(ErrorKind::usage,
                fmt::format("a batch with {} first rows, {} first columns and {} first entries; there must "
                            "be as many, one more than matrices",
                            rows.size(), cols.size(), entries.size()));
  most_rows = take(rows, first_row, "rows");
  most_cols = take(cols, first_col, "columns");
  most_entries = take(entries, first_entry, "nonzeros");
}

std::string_view name(BatchFormat format) { return format == BatchFormat::csr ? "csr" : "coo"; }

std::int64_t DeviceBatch::bytes() const {
  return at.nnz() * static_cast<std::int64_t>(sizeof(std::int32_t) + size_of(type)) +
         static_cast<std::int64_t>(sizeof(std::int32_t)) * (format == BatchFormat::csr ? at.rows() + 1 : at.nnz());
}

std::int64_t DeviceBatch::compulsory_bytes(std::int64_t columns) const {
  return bytes() + columns * (at.cols() * static_cast<std::int64_t>(size_of(type)) +
                              at.rows() * static_cast<std::int64_t>(size_of(sum_type(type))));
}

std::size_t csr_block_bytes(std::int64_t rows, std::int64_t nnz, ValueType type) {
  const auto entries = static_cast<std::size_t>(nnz);
  return aligned(sizeof(std::int32_t) * static_cast<std::size_t>(rows + 1)) + aligned(sizeof(std::int32_t) * entries) +
         size_of(type) * entries;
}

PackedBatch::PackedBatch(const BatchView& batch, ValueType type)
    : row_ptr_(batch.row_ptr), col_idx_(batch.col_idx), values_(batch.values) {
  shape_.type = type;
  std::vector<std::int64_t> entries;
  entries.reserve(batch.first_row.size());
  for (const std::int64_t row : batch.first_row)
    entries.push_back(batch.row_ptr[static_cast<std::size_t>(row - batch.first_row.front())]);
  shape_.at = BatchOffsets(batch.first_row, batch.first_col, entries);
  lay_out();
}

PackedBatch::PackedBatch(const CooBatchView& batch, ValueType type)
    : row_idx_(batch.row_idx), col_idx_(batch.col_idx), values_(batch.values) {
  shape_.format = BatchFormat::coo;
  shape_.type = type;
  shape_.at = BatchOffsets(batch.first_row, batch.first_col, batch.first_entry);
  lay_out();
}

void PackedBatch::lay_out() {
  require_in_range(shape_.type, values_, "the batch");
  const std::int64_t nnz = shape_.at.nnz();
  columns_ = aligned(sizeof(std::int32_t) *
                     static_cast<std::size_t>(shape_.format == BatchFormat::csr ? shape_.at.rows() + 1 : nnz));
  values_place_ = columns_ + aligned(sizeof(std::int32_t) * static_cast<std::size_t>(nnz));
  bytes_ = values_place_ + size_of(shape_.type) * static_cast<std::size_t>(nnz);
}

void PackedBatch::write(std::byte* to) const {
  const std::int64_t nnz = shape_.at.nnz();
  if (shape_.format == BatchFormat::coo) fill<std::int32_t>(to, nnz, [&](std::size_t k) { return row_idx_[k]; });
  else if (row_ptr_.empty()) *reinterpret_cast<std::int32_t*>(to) = 0;
  else fill<std::int32_t>(to, shape_.at.rows() + 1, [&](std::size_t row) { return row_ptr_[row] - row_ptr_[0]; });
  fill<std::int32_t>(to + columns_, nnz, [&](std::size_t k) { return col_idx_[k]; });
  dispatch_operands(shape_.type, [&](auto of_a, auto) {
    fill<typename decltype(of_a)::type>(to + values_place_, nnz, [&](std::size_t k) { return values_[k]; });
  });
}

DeviceBatch PackedBatch::at(Device device, const void* memory) const {
  DeviceBatch batch = shape_;
  batch.device = device;
  const auto* base = static_cast<const std::byte*>(memory);
  (shape_.format == BatchFormat::csr ? batch.row_ptr : batch.row_idx) = reinterpret_cast<const std::int32_t*>(base);
  batch.col_idx = reinterpret_cast<const std::int32_t*>(base + columns_);
  batch.values = base + values_place_;
  return batch;
}

std::shared_ptr<StoredBatch> upload(const BatchView& batch, ValueType type, Stream& stream) {
  return store(PackedBatch(batch, type), stream);
}
std::shared_ptr<StoredBatch> upload(const CooBatchView& batch, ValueType type, Stream& stream) {
  return store(PackedBatch(batch, type), stream);
}

}  // namespace shardmat
