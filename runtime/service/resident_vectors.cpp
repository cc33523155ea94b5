#include "runtime/service/resident_vectors.h"

#include <fmt/format.h>

#include <limits>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/column_packing.h"
#include "runtime/service/columns.h"

namespace shardmat::service {
namespace {

/// The columns of a vector in the arena, one after another.
std::vector<std::byte*> columns_at(const Arena& arena, std::uint64_t offset, std::int64_t size, std::int64_t columns,
                                   ValueType type) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(size) * size_of(type);
  std::vector<std::byte*> at;
  for (std::int64_t j = 0; j < columns; ++j)
    at.push_back(arena.at(offset + static_cast<std::uint64_t>(j) * bytes, bytes).data());
  return at;
}

}  // namespace

VectorMade ResidentVectors::make(const MakeVector& command, std::shared_ptr<const Distribution> distribution) {
  Vector vector{std::move(distribution), command.type, command.columns, {}};
  const std::int64_t entries = std::ssize(vector.distribution->ids),
                     a_column = entries * static_cast<std::int64_t>(size_of(command.type));
  context_.communicator().together([&] {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    require_memory(context_.device(),
                   a_column > 0 && command.columns > kMost / a_column ? kMost : a_column * command.columns,
                   fmt::format("this rank's part of a vector of {} entries and {} columns", vector.distribution->size,
                               command.columns));
    vector.memory = Buffer(context_.device(), static_cast<std::size_t>(a_column * command.columns));
    fill_bytes(vector.memory.data(), 0, vector.memory.bytes(), context_.stream());
  });
  const VectorMade made{vector.distribution->size, a_column * command.columns, vector.distribution->number, 0};
  vectors_[command.vector] = std::move(vector);
  return made;
}

const ResidentVectors::Vector& ResidentVectors::at(std::uint64_t number) const {
  const auto found = vectors_.find(number);
  if (found == vectors_.end()) throw AgreedError(ErrorKind::internal, fmt::format("the ranks have no vector {}", number));
  return found->second;
}

Dense ResidentVectors::view(std::uint64_t number, const Distribution& distribution, ValueType type,
                            std::int64_t columns) const {
  const Vector& vector = at(number);
  if (vector.distribution->number != distribution.number || vector.type != type || vector.columns != columns)
    throw AgreedError(ErrorKind::internal, fmt::format("vector {} does not fit this product", number));
  return {vector.memory.data(), std::ssize(vector.distribution->ids), columns, columns, DenseOrder::row_major, type,
          context_.device()};
}

void ResidentVectors::write(const WriteVector& command, const Arena& arena) {
  const Vector& vector = at(command.vector);
  const bool on_host = context_.device().backend == Backend::host;
  const auto places = columns_at(arena, command.offset, vector.distribution->size, vector.columns, vector.type);
  const std::vector<const std::byte*> from(places.begin(), places.end());
  if (!on_host) staging_.reserve(vector.memory.bytes(), context_.device(), true);
  gather_columns(from, vector.distribution->ids, vector.type, vector.columns, {vector.columns, 1},
                 on_host ? vector.memory.data() : staging_.data());
  if (!on_host) copy_to_device(vector.memory.data(), staging_.data(), vector.memory.bytes(), context_.stream());
}

void ResidentVectors::read(const ReadVector& command, const Arena& arena) {
  const Vector& vector = at(command.vector);
  const bool on_host = context_.device().backend == Backend::host;
  if (!on_host) {
    staging_.reserve(vector.memory.bytes(), context_.device(), true);
    copy_to_host(staging_.data(), vector.memory.data(), vector.memory.bytes(), context_.stream());
  }
  std::vector<UnpackedColumn> columns;
  for (std::byte* const column : columns_at(arena, command.offset, vector.distribution->size, vector.columns, vector.type))
    columns.push_back({column, 1, 0});
  unpack_columns_on_host(vector.type, on_host ? vector.memory.data() : staging_.data(), vector.columns,
                         vector.distribution->ids, columns, context_.device());
}

}  // namespace shardmat::service
