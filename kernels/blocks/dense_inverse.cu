// The inverse of a small matrix, by Gauss and Jordan without exchanges.
#include <algorithm>
#include <utility>

#include "kernels/blocks/setup.h"
#include "kernels/blocks/small_blocks.h"

namespace shardmat::blocks {
namespace {

constexpr int kTile = 32;                    ///< pivots at a time
constexpr int kTileRows = kThreads / kTile;  ///< rows that the threads of a block have at once
constexpr double kLost = 1e-13;              ///< a pivot that has lost all but this share of its diagonal entry is none

/// The identity; before: its diagonal.
__global__ void begin_with_identity(std::int64_t n, double* dense, double* before) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= n * n) return;
  const std::int64_t i = at / n, j = at - i * n;
  dense[at] = i == j ? 1 : 0;
  if (i == j) before[i] = 1;
}

/// A warp a row of blocks.
__global__ void put_blocks(std::int64_t count, int size, const std::int64_t* start, const std::int32_t* column,
                           const double* value, std::int64_t n, double* dense, double* before) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kLanes;
  if (i >= count) return;
  const int lane = static_cast<int>(threadIdx.x) % kLanes, entries = size * size;
  for (int r = lane; r < size; r += kLanes) dense[(i * size + r) * (n + 1)] = before[i * size + r] = 0;
  __syncwarp();
  for (std::int64_t at = start[i] * entries + lane; at < start[i + 1] * entries; at += kLanes) {
    const std::int64_t k = at / entries;
    const int e = static_cast<int>(at - k * entries), r = e / size, c = e - r * size;
    const std::int64_t row = i * size + r, col = std::int64_t{column[k]} * size + c;
    dense[row * n + col] = value[at];
    if (row == col) before[row] = value[at];
  }
}

/// The pivots k … k + kTile − 1, for one tile of the matrix: `to` becomes what they make of `from`. Each thread block
/// inverts the tile on the diagonal for itself.
__global__ void __launch_bounds__(kThreads)
    eliminate(std::int64_t n, std::int64_t k, const double* from, const double* before, double* to) {
  __shared__ double inverse[kTile][kTile + 1], beside[kTile][kTile + 1], above[kTile][kTile + 1], least[kTile];
  const int c = static_cast<int>(threadIdx.x) % kTile, first = static_cast<int>(threadIdx.x) / kTile;
  const std::int64_t row = std::int64_t{blockIdx.y} * kTile, col = std::int64_t{blockIdx.x} * kTile;
  for (int r = first; r < kTile; r += kTileRows) {
    inverse[r][c] = from[(k + r) * n + k + c];
    beside[r][c] = from[(row + r) * n + k + c];
    above[r][c] = from[(k + r) * n + col + c];
  }
  if (first == 0) least[c] = kLost * before[k + c];
  __syncthreads();
  for (int p = 0; p < kTile; ++p) {
    const double pivot = inverse[p][p], across = inverse[p][c];
    double down[kTile / kTileRows];
    for (int q = 0; q < kTile / kTileRows; ++q) down[q] = inverse[first + q * kTileRows][p];
    const bool has = pivot > least[p];
    __syncthreads();
    for (int q = 0; q < kTile / kTileRows; ++q) {
      const int r = first + q * kTileRows;
      const double scaled = has ? (c == p ? 1 : across) / pivot : 0;
      double& here = inverse[r][c];
      if (r == p) here = scaled;
      else if (c == p) here = has ? -down[q] * scaled : 0;
      else if (has) here -= down[q] * scaled;
    }
    __syncthreads();
  }
  const bool of_row = row == k, of_col = col == k;
  double product[kTile / kTileRows] = {};  // inverse · above, or what stands in its place
  for (int q = 0; q < kTile / kTileRows; ++q) {
    const int r = first + q * kTileRows;
    if (of_col) product[q] = inverse[r][c];
    else
      for (int p = 0; p < kTile; ++p) product[q] += inverse[r][p] * above[p][c];
  }
  __syncthreads();
  for (int q = 0; q < kTile / kTileRows; ++q) above[first + q * kTileRows][c] = product[q];
  __syncthreads();
  for (int q = 0; q < kTile / kTileRows; ++q) {
    const int r = first + q * kTileRows;
    const std::int64_t at = (row + r) * n + col + c;
    if (of_row) {
      to[at] = product[q];
      continue;
    }
    double sum = of_col ? 0 : from[at];
    for (int p = 0; p < kTile; ++p) sum -= beside[r][p] * above[p][c];
    to[at] = sum;
  }
}

__global__ void take_blocks(std::int64_t values, std::int64_t count, int size, const double* dense, std::int64_t n,
                            std::int64_t* start, std::int32_t* column, double* value) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at <= count) start[at] = at * count;
  if (at >= values) return;
  const std::int64_t entries = std::int64_t{size} * size, k = at / entries, e = at - k * entries, i = k / count,
                     j = k - i * count;
  if (e == 0) column[k] = static_cast<std::int32_t>(j);
  value[at] = dense[(i * size + e / size) * n + j * size + e % size];
}

}  // namespace

BlockRows dense_inverse(const BlockRows& a, Stream& stream) {
  const int size = a.row_size;
  const std::int64_t rows = a.count * size, n = (rows + kTile - 1) / kTile * kTile, tiles = n / kTile;
  BlockRows out;
  out.row_size = out.col_size = size;
  out.count = out.cols = a.count, out.blocks = a.count * a.count;
  const std::int64_t values = out.blocks * out.block_entries();
  require_memory(stream.device(), 8 * (2 * n * n + n + values) + 4 * out.blocks, "the last level of multigrid");
  Buffer from = array<double>(n * n, stream), to = array<double>(n * n, stream);
  const Buffer before = array<double>(n, stream);
  cuda::launch(begin_with_identity, n * n, kThreads, stream, n, from.as<double>(), before.as<double>());
  cuda::launch(put_blocks, a.count * kLanes, kThreads, stream, a.count, size, a.start.as<std::int64_t>(),
               a.column.as<std::int32_t>(), a.value.as<double>(), n, from.as<double>(), before.as<double>());
  for (std::int64_t k = 0; k < n; k += kTile) {
    cuda::launch_grid(eliminate, tiles, tiles, dim3(kThreads), 0, stream, n, k, from.as<double>(), before.as<double>(),
                      to.as<double>());
    std::swap(from, to);
  }
  out.start = array<std::int64_t>(out.count + 1, stream);
  out.column = array<std::int32_t>(out.blocks, stream), out.value = array<double>(values, stream);
  cuda::launch(take_blocks, std::max(values, out.count + 1), kThreads, stream, values, out.count, size, from.as<double>(), n,
               out.start.as<std::int64_t>(), out.column.as<std::int32_t>(), out.value.as<double>());
  stream.synchronize();
  return out;
}

}  // namespace shardmat::blocks
