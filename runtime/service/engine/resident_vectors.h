// Vectors that stay on the ranks between requests: each rank has its own entries in device memory, in the order of the
// vector's map.
//
// Threads: one thread of each rank. Collective unless said otherwise.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "kernels/base/dense.h"
#include "kernels/base/device.h"
#include "runtime/context/context.h"
#include "runtime/maps/row_map.h"
#include "runtime/service/engine/column_transfer.h"
#include "runtime/service/engine/memories.h"
#include "runtime/service/wire/command.h"

namespace shardmat::service {

class ResidentVectors {
 public:
  explicit ResidentVectors(Context& context) : context_(context), transfer_(context.stream()) {}
  ResidentVectors(const ResidentVectors&) = delete;
  ResidentVectors& operator=(const ResidentVectors&) = delete;

  /// Makes a vector of zeros. Throws Error(resources) on all ranks if one of them has no memory for it.
  VectorMade make(const MakeVector& command, std::shared_ptr<const RowMap> map);
  /// A vector is complete in the arena once all ranks have returned.
  void write(const WriteVector& command, Memories& memories);
  void read(const ReadVector& command, Memories& memories);
  /// Not collective.
  void drop(const DropVector& command) { vectors_.erase(command.vector); }

  /// Between columns that are no vectors and a block of this rank's entries of them. They wait for it. What the block has
  /// beside these columns becomes 0, and is not given.
  void take(std::span<const Place> places, const RowMap& map, const Dense& block, Memories& memories);
  void give(const Dense& block, const RowMap& map, std::span<const Place> places, Memories& memories);

  /// This rank's entries. Not collective. Throws AgreedError(internal) unless vector `number` is distributed like this and
  /// has this type and number of columns; the front end checks them before.
  Dense view(std::uint64_t number, const RowMap& map, ValueType type, std::int64_t columns) const;

 private:
  struct Vector {
    std::shared_ptr<const RowMap> map;
    ValueType type = ValueType::f64;
    std::int64_t columns = 1;
    Buffer memory;
  };
  const Vector& at(std::uint64_t number) const;
  Dense block(const Vector& vector) const;

  Context& context_;
  std::map<std::uint64_t, Vector> vectors_;  ///< by number
  ColumnTransfer transfer_;
};

}  // namespace shardmat::service
