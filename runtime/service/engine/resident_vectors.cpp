#include "runtime/service/engine/resident_vectors.h"

#include <fmt/format.h>

#include <limits>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/column_packing.h"

namespace shardmat::service {
namespace {

std::uint64_t column_bytes(const RowMap& map, const Dense& block) {
  return static_cast<std::uint64_t>(map.size()) * size_of(block.type);
}

/// Columns in the arena or a memory, one after another.
std::vector<Place> places_from(std::uint64_t offset, std::uint64_t memory, const RowMap& map, const Dense& block) {
  std::vector<Place> places;
  for (std::int64_t j = 0; j < block.columns; ++j)
    places.push_back({0, offset + static_cast<std::uint64_t>(j) * column_bytes(map, block), memory});
  return places;
}

}  // namespace

VectorMade ResidentVectors::make(const MakeVector& command, std::shared_ptr<const RowMap> map) {
  Vector vector{std::move(map), command.type, command.columns, {}};
  const std::int64_t entries = std::ssize(vector.map->ids()),
                     a_column = entries * static_cast<std::int64_t>(size_of(command.type));
  context_.communicator().run_agreed([&] {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    require_memory(
        context_.device(), a_column > 0 && command.columns > kMost / a_column ? kMost : a_column * command.columns,
        fmt::format("this rank's part of a vector of {} entries and {} columns", vector.map->size(), command.columns));
    vector.memory = Buffer(context_.device(), static_cast<std::size_t>(a_column * command.columns));
    fill_bytes(vector.memory.data(), 0, vector.memory.bytes(), context_.stream());
    transfer_.reserve(block(vector), *vector.map);
  });
  const VectorMade made{vector.map->size(), a_column * command.columns, vector.map->number(), 0};
  vectors_[command.vector] = std::move(vector);
  return made;
}

const ResidentVectors::Vector& ResidentVectors::at(std::uint64_t number) const {
  const auto found = vectors_.find(number);
  if (found == vectors_.end()) throw AgreedError(ErrorKind::internal, fmt::format("the ranks have no vector {}", number));
  return found->second;
}

Dense ResidentVectors::view(std::uint64_t number, const RowMap& map, ValueType type, std::int64_t columns) const {
  const Vector& vector = at(number);
  if (vector.map->number() != map.number() || vector.type != type || vector.columns != columns)
    throw AgreedError(ErrorKind::internal, fmt::format("vector {} does not fit this product", number));
  return block(vector);
}

Dense ResidentVectors::block(const Vector& vector) const {
  return {vector.memory.data(), std::ssize(vector.map->ids()), vector.columns,
          vector.columns,       DenseOrder::row_major,         vector.type,
          context_.device()};
}

void ResidentVectors::take(std::span<const Place> places, const RowMap& map, const Dense& block, Memories& memories) {
  memories.fetch(places, map, block.type);
  context_.communicator().run_agreed([&] { transfer_.reserve(block, map); });
  std::vector<const std::byte*> columns;
  for (const Place& place : places) columns.push_back(memories.at(place, column_bytes(map, block)).data());
  transfer_.take(columns, map, block);
  context_.stream().synchronize();
}

void ResidentVectors::give(const Dense& block, const RowMap& map, std::span<const Place> places, Memories& memories) {
  context_.communicator().run_agreed([&] { transfer_.reserve(block, map); });
  std::vector<UnpackedColumn> columns;
  for (const Place& place : places) columns.push_back({memories.at(place, column_bytes(map, block)).data(), 1, 0});
  transfer_.give(block, map, columns);
  memories.deliver(places, map, block.type);
}

void ResidentVectors::write(const WriteVector& command, Memories& memories) {
  const Vector& vector = at(command.vector);
  take(places_from(command.offset, 0, *vector.map, block(vector)), *vector.map, block(vector), memories);
}

void ResidentVectors::read(const ReadVector& command, Memories& memories) {
  const Vector& vector = at(command.vector);
  give(block(vector), *vector.map, places_from(command.offset, command.memory, *vector.map, block(vector)), memories);
}

}  // namespace shardmat::service
