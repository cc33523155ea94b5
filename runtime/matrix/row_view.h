// Memory of a device as vectors on a row map.
#pragma once

#include <cstdint>

#include "kernels/base/dense.h"
#include "runtime/context/context.h"
#include "runtime/maps/row_map.h"

namespace shardmat {

/// The rows of this rank on `map`, in memory of its device: row-major without gaps.
inline Dense row_view(void* memory, const RowMap& map, std::int64_t columns, ValueType type) {
  return {memory, map.local_rows(), columns, columns, DenseOrder::row_major, type, map.context().device(), map.number()};
}

}  // namespace shardmat
