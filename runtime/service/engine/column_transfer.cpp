#include "runtime/service/engine/column_transfer.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/base/parallel.h"
#include "runtime/service/engine/columns.h"

namespace shardmat::service {
namespace {

/// Values that are worth a thread of their own to copy.
constexpr std::int64_t kCopyGrain = 1 << 16;
/// Bytes of neighbours in a row of a block that are written together: what a GPU's memory moves at least.
constexpr std::size_t kSectorBytes = 32;

std::size_t entry_bytes(const Dense& block) { return size_of(block.type); }
std::size_t column_bytes(const RowMap& map, const Dense& block) { return map.ids().size() * entry_bytes(block); }
std::int64_t columns_at_a_time(const Dense& block) {
  return std::min(block.columns, static_cast<std::int64_t>(kSectorBytes / entry_bytes(block)));
}
/// Where a rank's entries of a column begin.
std::size_t first_byte(const RowMap& map, const Dense& block) {
  return static_cast<std::size_t>(map.ids().front()) * entry_bytes(block);
}
std::size_t block_bytes(const RowMap& map, const Dense& block) {
  const std::size_t outer =
      block.order == DenseOrder::row_major ? map.ids().size() : static_cast<std::size_t>(block.columns);
  return outer * static_cast<std::size_t>(block.leading) * entry_bytes(block);
}
bool is_copied(const UnpackedColumn& column) { return column.y != nullptr && column.alpha == 1 && column.beta == 0; }
bool is_one_column(const Dense& block) { return block.columns == 1 && strides(block.order, block.leading).row == 1; }

}  // namespace

bool ColumnTransfer::copies_columns(const Dense& block, const RowMap& map) const {
  return map.is_range() && (block.order == DenseOrder::row_major || is_one_column(block));
}

void ColumnTransfer::reserve(const Dense& block, const RowMap& map) {
  if (on_host() || map.ids().empty()) return;
  if (!copies_columns(block, map)) return staging_.reserve(block_bytes(map, block), stream_.device(), true);
  const std::size_t wanted = static_cast<std::size_t>(columns_at_a_time(block)) * column_bytes(map, block);
  if (columns_.bytes() >= wanted) return;
  require_memory(stream_.device(), static_cast<std::int64_t>(wanted), "columns on their way to and from a GPU");
  columns_ = {};
  columns_ = Buffer(stream_.device(), wanted);
}

void ColumnTransfer::take(std::span<const std::byte* const> columns, const RowMap& map, const Dense& block) {
  if (map.ids().empty()) return;
  if (on_host()) return take_on_host(columns, map, block);
  reserve(block, map);
  if (copies_columns(block, map)) return take_to_device(columns, map, block);
  gather_columns(columns, map.ids(), block.type, block.columns, strides(block.order, block.leading), staging_.data());
  copy_to_device(block.data, staging_.data(), block_bytes(map, block), stream_);
}

void ColumnTransfer::take_on_host(std::span<const std::byte* const> columns, const RowMap& map, const Dense& block) {
  if (!map.is_range() || !is_one_column(block) || columns.empty() || columns.front() == nullptr)
    return gather_columns(columns, map.ids(), block.type, block.columns, strides(block.order, block.leading), block.data);
  const auto entry = static_cast<std::int64_t>(entry_bytes(block));
  const std::byte* const from = columns.front() + first_byte(map, block);
  parallel_ranges(std::ssize(map.ids()), kCopyGrain, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(static_cast<std::byte*>(block.data) + begin * entry, from + begin * entry,
                static_cast<std::size_t>((end - begin) * entry));
  });
}

void ColumnTransfer::take_to_device(std::span<const std::byte* const> columns, const RowMap& map, const Dense& block) {
  const std::size_t bytes = column_bytes(map, block), first = first_byte(map, block);
  if (is_one_column(block)) {
    if (columns.empty()) fill_bytes(block.data, 0, bytes, stream_);
    else if (columns.front() != nullptr) copy_to_device_async(block.data, columns.front() + first, bytes, stream_);
    return;
  }
  if (std::ssize(columns) < block.columns) fill_bytes(block.data, 0, block_bytes(map, block), stream_);
  const auto at_a_time = static_cast<std::size_t>(columns_at_a_time(block));
  for (std::size_t begin = 0; begin < columns.size(); begin += at_a_time) {
    std::vector<const void*> some;
    for (std::size_t j = begin; j < std::min(columns.size(), begin + at_a_time); ++j) {
      std::byte* const place = columns[j] == nullptr ? nullptr : columns_.as<std::byte>() + (j - begin) * bytes;
      if (place != nullptr) copy_to_device_async(place, columns[j] + first, bytes, stream_);
      some.push_back(place);
    }
    pack_columns(block.type, std::ssize(map.ids()), some, static_cast<std::byte*>(block.data) + begin * entry_bytes(block),
                 block.leading, stream_);
  }
}

void ColumnTransfer::give(const Dense& block, const RowMap& map, std::span<const UnpackedColumn> columns) {
  if (map.ids().empty()) return;
  reserve(block, map);
  if (!on_host() && copies_columns(block, map)) return give_from_device(block, map, columns);
  if (!on_host()) copy_to_host(staging_.data(), block.data, block_bytes(map, block), stream_);
  unpack_columns_on_host(block.type, on_host() ? block.data : staging_.data(), block.leading, map.ids(), columns,
                         stream_.device());
}

void ColumnTransfer::give_from_device(const Dense& block, const RowMap& map, std::span<const UnpackedColumn> columns) {
  const std::size_t bytes = column_bytes(map, block), first = first_byte(map, block);
  const auto at_a_time = static_cast<std::size_t>(columns_at_a_time(block));
  const auto in_memory = [&](const UnpackedColumn& column) { return static_cast<std::byte*>(column.y) + first; };
  if (is_one_column(block) && columns.size() == 1 && is_copied(columns.front())) {
    copy_to_host_async(in_memory(columns.front()), block.data, bytes, stream_);
    return stream_.synchronize();
  }
  for (std::size_t begin = 0; begin < columns.size(); begin += at_a_time) {
    std::vector<UnpackedColumn> some;
    const auto here = columns.subspan(begin, std::min(at_a_time, columns.size() - begin));
    for (const UnpackedColumn& column : here) {
      some.push_back(column);
      if (column.y == nullptr) continue;
      some.back().y = columns_.as<std::byte>() + (some.size() - 1) * bytes;
      if (column.beta != 0) copy_to_device_async(some.back().y, in_memory(column), bytes, stream_);
    }
    unpack_columns(block.type, std::ssize(map.ids()), static_cast<const std::byte*>(block.data) + begin * entry_bytes(block),
                   block.leading, some, stream_);
    for (std::size_t j = 0; j < here.size(); ++j)
      if (some[j].y != nullptr) copy_to_host_async(in_memory(here[j]), some[j].y, bytes, stream_);
  }
  stream_.synchronize();
}

}  // namespace shardmat::service
