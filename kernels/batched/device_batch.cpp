#include "kernels/batched/device_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"

namespace shardmat {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kAlignment = 256;

std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::int32_t take(std::span<const std::int64_t> from, std::vector<std::int32_t>& to, const char* what) {
  if (from.empty()) return 0;
  std::int64_t most = 0;
  if (from.back() - from.front() > kMost)
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

/// One block of memory for several arrays, on the host as they will lie on the device.
class Packed {
 public:
  template <class To>
  std::size_t reserve(std::int64_t count) {
    const std::size_t place = bytes_;
    bytes_ += aligned(static_cast<std::size_t>(count) * sizeof(To));
    return place;
  }
  void allocate() { memory_.resize(bytes_); }
  template <class To, class Entry>
  void fill(std::size_t place, std::int64_t count, const Entry& entry) {
    To* out = reinterpret_cast<To*>(memory_.data() + place);
    parallel_ranges(count, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) out[i] = static_cast<To>(entry(static_cast<std::size_t>(i)));
    });
  }
  Buffer copy(Stream& stream) const {
    require_memory(stream.device(), static_cast<std::int64_t>(bytes_), "the batch");
    Buffer buffer(stream.device(), bytes_);
    if (bytes_ > 0) copy_to_device(buffer.data(), memory_.data(), bytes_, stream);
    return buffer;
  }

 private:
  std::size_t bytes_ = 0;
  HostVector<std::byte> memory_;
};

/// Packs `indices` (an entry's or a row's), columns and values, copies them, and says where they lie.
template <class Indices>
std::shared_ptr<StoredBatch> store(StoredBatch&& stored, std::int64_t index_count, const Indices& index,
                                   std::span<const std::int32_t> col_idx, std::span<const double> values, Stream& stream) {
  stored.device = stream.device();
  Packed packed;
  const std::int64_t nnz = stored.at.nnz();
  const std::size_t indices = packed.reserve<std::int32_t>(index_count), columns = packed.reserve<std::int32_t>(nnz);
  std::size_t value = 0;
  dispatch_operands(stored.type, [&](auto of_a, auto) { value = packed.reserve<typename decltype(of_a)::type>(nnz); });
  packed.allocate();
  packed.fill<std::int32_t>(indices, index_count, index);
  packed.fill<std::int32_t>(columns, nnz, [&](std::size_t k) { return col_idx[k]; });
  require_in_range(stored.type, values, "the batch");
  dispatch_operands(stored.type, [&](auto of_a, auto) {
    packed.fill<typename decltype(of_a)::type>(value, nnz, [&](std::size_t k) { return values[k]; });
  });
  stored.memory = packed.copy(stream);
  const auto* base = stored.memory.as<std::byte>();
  const auto at = [&](std::size_t place) { return reinterpret_cast<const std::int32_t*>(base + place); };
  (stored.format == BatchFormat::csr ? stored.row_ptr : stored.row_idx) = at(indices);
  stored.col_idx = at(columns);
  stored.values = base + value;
  return std::make_shared<StoredBatch>(std::move(stored));
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

std::shared_ptr<StoredBatch> upload(const BatchView& batch, ValueType type, Stream& stream) {
  StoredBatch stored;
  stored.type = type;
  std::vector<std::int64_t> entries;
  for (const std::int64_t row : batch.first_row)
    entries.push_back(batch.row_ptr[static_cast<std::size_t>(row - batch.first_row.front())]);
  stored.at = BatchOffsets(batch.first_row, batch.first_col, entries);
  const auto pointer = [&](std::size_t row) { return batch.row_ptr.empty() ? 0 : batch.row_ptr[row] - batch.row_ptr[0]; };
  return store(std::move(stored), batch.rows() + 1, pointer, batch.col_idx, batch.values, stream);
}

std::shared_ptr<StoredBatch> upload(const CooBatchView& batch, ValueType type, Stream& stream) {
  StoredBatch stored;
  stored.format = BatchFormat::coo;
  stored.type = type;
  stored.at = BatchOffsets(batch.first_row, batch.first_col, batch.first_entry);
  const auto row = [&](std::size_t k) { return batch.row_idx[k]; };
  return store(std::move(stored), batch.nnz(), row, batch.col_idx, batch.values, stream);
}

}  // namespace shardmat
