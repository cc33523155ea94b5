// Rows that a kernel cut between tiles of nonzeros, and their sums: each tile leaves the parts of its first and its last
// row, and a second kernel adds the parts of a row in a fixed order, so that results do not vary from run to run.
#pragma once

#include <cstdint>

#include "kernels/base/device.h"
#include "kernels/base/types.h"

namespace shardmat::cuda {

/// The row that tile t finishes for the tiles before it: its sum is tail[first] + … + tail[t - 1] + head[t].
struct SplitRow {
  std::int64_t row;  ///< -1: this tile finishes none
  std::int64_t first;
};

struct SplitRows {
  Buffer rows;        ///< SplitRow a tile
  Buffer head, tail;  ///< value a tile; head is written by every tile that finishes a split row, tail by every tile
  std::int64_t tiles = 0;

  SplitRows() = default;
  SplitRows(Device device, std::int64_t tiles, ValueType type)
      : rows(device, static_cast<std::size_t>(tiles) * sizeof(SplitRow)),
        head(device, static_cast<std::size_t>(tiles) * size_of(type)),
        tail(device, static_cast<std::size_t>(tiles) * size_of(type)),
        tiles(tiles) {}
  std::int64_t bytes() const { return static_cast<std::int64_t>(rows.bytes() + head.bytes() + tail.bytes()); }
};

/// y = alpha·sum + beta·y for all split rows, and y = beta·y for the `empty_count` rows in `empty`, in stream order.
/// Instances: float, double.
template <class T>
void finish_rows(const SplitRows& split, const std::int32_t* empty, std::int64_t empty_count, T alpha, T beta, T* y,
                 const Stream& stream);

}  // namespace shardmat::cuda
