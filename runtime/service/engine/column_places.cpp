#include "runtime/service/engine/column_places.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/column_packing.h"

namespace shardmat::service {
namespace {

std::uint64_t bytes_of_column(const RowMap& map, ValueType type) {
  return static_cast<std::uint64_t>(map.size()) * size_of(type);
}

}  // namespace

void ColumnPlaces::take(std::span<const Column> columns, Place Column::*side, const RowMap& map, const Dense& block) {
  std::vector<const std::byte*> in_memory;
  std::vector<const void*> on_device;
  for (const Column& column : columns) {
    const Place& place = column.*side;
    const bool stays = place.vector != 0;
    in_memory.push_back(stays ? nullptr : memories.at(place, bytes_of_column(map, block.type)).data());
    on_device.push_back(stays ? vectors.view(place.vector, map, block.type, 1).data : nullptr);
  }
  const auto is_null = [](const void* vector) { return vector == nullptr; };
  const bool all_stay = std::all_of(in_memory.begin(), in_memory.end(), is_null);
  if (!all_stay) transfer.take(in_memory, map, block);
  else if (std::ssize(columns) < block.columns)
    fill_bytes(block.data, 0, static_cast<std::size_t>(block.rows * block.leading) * size_of(block.type), stream);
  if (!std::all_of(on_device.begin(), on_device.end(), is_null))
    pack_columns(block.type, block.rows, on_device, block.data, block.leading, stream);
}

void ColumnPlaces::give(const Dense& y, const RowMap& map, std::span<const Column> columns) {
  std::vector<UnpackedColumn> in_memory, on_device;
  bool some_stay = false, all_stay = true;
  for (const Column& column : columns) {
    const bool stays = column.y.vector != 0;
    in_memory.push_back(
        {stays ? nullptr : memories.at(column.y, bytes_of_column(map, y.type)).data(), column.alpha, column.beta});
    on_device.push_back({stays ? vectors.view(column.y.vector, map, y.type, 1).data : nullptr, column.alpha, column.beta});
    some_stay = some_stay || stays, all_stay = all_stay && stays;
  }
  if (some_stay) {
    unpack_columns(y.type, y.rows, y.data, y.leading, on_device, stream);
    stream.synchronize();
  }
  if (!all_stay) transfer.give(y, map, in_memory);
}

}  // namespace shardmat::service
