// Sums of rows that a kernel splits between tiles of nonzeros. Each tile stores the partial sums of its first and its last
// row. A second kernel adds the partial sums of each row in a fixed order, so that results are the same in every run.
#pragma once

#include <cstdint>

#include "kernels/base/device.h"
#include "kernels/base/types.h"
#include "kernels/typed_plan.h"

namespace shardmat::cuda {

/// The split row that ends in tile t. It begins in tile b. Its sum is tail[b] + … + tail[t - 1], then + head[t].
struct SplitRow {
  std::int64_t row;    ///< -1: no split row ends in this tile
  std::int64_t first;  ///< b; or ~b if the row has nothing in tile t: then tail[t - 1] comes last, as head[t] else
};

constexpr int kFewParts = 16;  ///< tails that are added from the first to the last
/// More tails are added in strands: strand s has tails s, s + kStrands, … of the row. Then strands are added from the first
/// to the last.
constexpr int kStrands = 32;

struct SplitRows {
  Buffer rows;        ///< one SplitRow for each tile
  Buffer head, tail;  ///< `columns` values for each tile; a tile writes head if a split row ends in it, and always tail
  std::int64_t tiles = 0;
  int columns = 1;  ///< of the product

  SplitRows() = default;
  SplitRows(Device device, std::int64_t tiles, ValueType type, int columns = 1)
      : rows(device, static_cast<std::size_t>(tiles) * sizeof(SplitRow)),
        head(device, static_cast<std::size_t>(tiles * columns) * size_of(type)),
        tail(device, static_cast<std::size_t>(tiles * columns) * size_of(type)),
        tiles(tiles),
        columns(columns) {}
  std::int64_t bytes() const { return static_cast<std::int64_t>(rows.bytes() + head.bytes() + tail.bytes()); }
};

/// y = alpha·sum + beta·y for all split rows, and y = beta·y for the `empty_count` rows in `empty`, in stream order.
/// Instances: float, double. With DotInto<T> it leaves finish_parts(split, empty_count) parts for these rows.
template <class T, class Dot = NoDot>
void finish_rows(const SplitRows& split, const std::int32_t* empty, std::int64_t empty_count, T alpha, T beta, T* y,
                 const Stream& stream, Dot dot = {});
std::int64_t finish_parts(const SplitRows& split, std::int64_t empty_count);
/// The same for a product with split.columns right-hand sides; entry (i, j) of Y is y[i·ldy + j].
template <class T>
void finish_rows_of_columns(const SplitRows& split, const std::int32_t* empty, std::int64_t empty_count, T alpha, T beta,
                            T* y, std::int64_t ldy, const Stream& stream);

}  // namespace shardmat::cuda
