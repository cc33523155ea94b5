#include "runtime/service/engine/resident_vectors.h"

#include <fmt/format.h>

#include <limits>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/column_packing.h"

namespace shardmat::service {
namespace {

/// The columns of a vector in the arena, one after another.
std::vector<std::byte*> columns_at(Memories& memories, std::uint64_t offset, std::int64_t size, std::int64_t columns,
                                   ValueType type) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(size) * size_of(type);
  std::byte* const first = memories.at({0, offset, 0}, bytes * static_cast<std::uint64_t>(columns)).data();
  std::vector<std::byte*> at;
  for (std::int64_t j = 0; j < columns; ++j) at.push_back(first + static_cast<std::uint64_t>(j) * bytes);
  return at;
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

void ResidentVectors::write(const WriteVector& command, Memories& memories) {
  const Vector& vector = at(command.vector);
  const auto places = columns_at(memories, command.offset, vector.map->size(), vector.columns, vector.type);
  const std::vector<const std::byte*> from(places.begin(), places.end());
  transfer_.take(from, *vector.map, block(vector));
  context_.stream().synchronize();
}

void ResidentVectors::read(const ReadVector& command, Memories& memories) {
  const Vector& vector = at(command.vector);
  std::vector<UnpackedColumn> columns;
  for (std::byte* const column : columns_at(memories, command.offset, vector.map->size(), vector.columns, vector.type))
    columns.push_back({column, 1, 0});
  transfer_.give(block(vector), *vector.map, columns);
}

}  // namespace shardmat::service
