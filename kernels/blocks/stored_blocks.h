// The pattern of a matrix of dense blocks, and room for its values in another type and order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/device.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/types.h"
#include "kernels/blocks/block_rows.h"

namespace shardmat::blocks {

struct StoredBlocks {
  Buffer start, column, value;

  StoredBlocks() = default;
  /// Copies the pattern in stream order. The values are not written. Throws Error(resources).
  StoredBlocks(const BlockRows& rows, ValueType type, Stream& stream) {
    const std::int64_t values = rows.blocks * rows.block_entries() * static_cast<std::int64_t>(size_of(type));
    require_memory(stream.device(), values + 8 * (rows.count + 1) + 4 * rows.blocks, "a level of multigrid");
    start = Buffer(stream.device(), static_cast<std::size_t>(rows.count + 1) * sizeof(std::int64_t));
    column = Buffer(stream.device(), static_cast<std::size_t>(rows.blocks) * sizeof(std::int32_t));
    value = Buffer(stream.device(), static_cast<std::size_t>(values));
    copy_on_device(start.data(), rows.start.data(), start.bytes(), stream);
    copy_on_device(column.data(), rows.column.data(), column.bytes(), stream);
  }

  std::int64_t bytes() const { return static_cast<std::int64_t>(start.bytes() + column.bytes() + value.bytes()); }
};

}  // namespace shardmat::blocks
