// How the kernels of Nagasaka, Nukada, Kojima and Matsuoka (CCGrid'19), and TensorFlow's beside them, cut a batch into
// thread blocks. The kernels and the models of what they do share these decisions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace shardmat::batched {

/// Bytes of shared memory that sums may take in a thread block.
inline constexpr std::int64_t kSharedOfPaper = 32 << 10;
/// Threads a block, the first one first tried.
inline constexpr int kCooSwaBlocks[] = {256, 512, 1024, 128, 64}, kSwaBlocks[] = {128, 64, 256, 512};
inline constexpr int kTensorflowBlock = 256;

/// subWarp of section 4.1: the number of lanes for `columns` columns.
inline int sub_warp_of(std::int64_t columns) {
  int lanes = 1;
  while (lanes < 32 && lanes < columns) lanes *= 2;
  return lanes;
}

/// Fig. 5 (a), (b): columns of Y that one thread block makes in shared memory, if the largest matrix has `most_rows` rows
/// and sums take `value_bytes`. 0: too many rows, or a grid would have too many blocks; sums are then made in global memory.
inline int coo_swa_part_columns(std::int32_t most_rows, std::int64_t value_bytes, std::int64_t columns) {
  constexpr std::int64_t most_parts = 65535;  // of a grid, across
  const std::int64_t part = std::min<std::int64_t>(kSharedOfPaper / value_bytes / std::max(most_rows, 1), columns);
  return part > 0 && (columns + part - 1) / part <= most_parts ? static_cast<int>(part) : 0;
}

/// Fig. 5 (c), (d): blocks come matrix by matrix, for each `parts` blocks of columns, for each `row_blocks` blocks of rows.
struct SwaSpread {
  int row_blocks, parts, part_columns, sub_warp;
};
/// `value_bytes`: of sums. Without shared memory columns are not cut.
inline SwaSpread swa_spread(std::int32_t most_rows, std::int64_t value_bytes, std::int64_t columns, int block,
                            bool in_shared) {
  const int sub_warp = sub_warp_of(columns), rows = block / sub_warp;
  const std::int64_t fit = kSharedOfPaper / rows / value_bytes / sub_warp * sub_warp;
  const std::int64_t parts = in_shared ? (columns + fit - 1) / fit : 1;
  return {(most_rows + rows - 1) / rows, static_cast<int>(parts), static_cast<int>(parts == 1 ? columns : fit), sub_warp};
}

}  // namespace shardmat::batched
