#include "kernels/cuda/split_rows.h"

#include <algorithm>

#include "kernels/cuda/dot_sums.h"
#include "kernels/cuda/launch.h"

namespace shardmat::cuda {
namespace {

constexpr int kBlock = 256;

/// A column of Y.
template <class T>
struct Column {
  T alpha, beta;
  T* y;
  std::int64_t stride;  ///< from one row to the next

  template <class Dot>
  __device__ void write(T sum, std::int64_t row, DotSum<Dot>& dot) const {
    T& at = y[row * stride];
    const T of_row = beta == T(0) ? alpha * sum : fma(beta, at, alpha * sum);
    at = of_row;
    dot.add(row, of_row);
  }
};

/// A split row: its tails first … last - 1, and the part behind them; for one of `columns` columns.
template <class T>
struct Parts {
  std::int64_t first, last;
  T end;

  __device__ Parts(const SplitRow& split, std::int64_t tile, const T* head, const T* tail, std::int64_t columns)
      : first(split.first < 0 ? ~split.first : split.first),
        last(split.first < 0 ? tile - 1 : tile),
        end(split.first < 0 ? tail[(tile - 1) * columns] : head[tile * columns]) {}
};

/// Blocks whose y is j take column j.
template <class T, class Dot>
__global__ void finish_rows_kernel(std::int64_t tiles, const SplitRow* __restrict__ rows, const T* __restrict__ head,
                                   const T* __restrict__ tail, const std::int32_t* __restrict__ empty,
                                   std::int64_t empty_count, Column<T> out, Dot dot) {
  DotSum<Dot> dot_sum(dot);
  const std::int64_t columns = gridDim.y;
  head += blockIdx.y, tail += blockIdx.y, out.y += blockIdx.y;
  const std::int64_t tile = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (tile < empty_count) out.write(T(0), empty[tile], dot_sum);
  bool is_long = false;
  if (tile < tiles && rows[tile].row >= 0) {
    const Parts<T> parts(rows[tile], tile, head, tail, columns);
    is_long = parts.last - parts.first > kFewParts;
    if (!is_long) {
      T sum = 0;
      for (std::int64_t t = parts.first; t < parts.last; ++t) sum += tail[t * columns];
      out.write(sum + parts.end, rows[tile].row, dot_sum);
    }
  }
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (unsigned left = __ballot_sync(0xffffffffu, is_long); left != 0; left &= left - 1) {  // a warp for each long row
    const std::int64_t of_row = tile - lane + (__ffs(static_cast<int>(left)) - 1);
    const Parts<T> parts(rows[of_row], of_row, head, tail, columns);
    T strand = 0;
#pragma unroll 8
    for (std::int64_t t = parts.first + lane; t < parts.last; t += kStrands) strand += tail[t * columns];
    T sum = T(0) + strand;
    for (int s = 1; s < kStrands; ++s) sum += __shfl_down_sync(0xffffffffu, strand, static_cast<unsigned>(s));
    if (lane == 0) out.write(sum + parts.end, rows[of_row].row, dot_sum);
  }
  leave_dot_part(dot_sum, blockIdx.x);
}

}  // namespace

std::int64_t finish_parts(const SplitRows& split, std::int64_t empty_count) {
  return (std::max(split.tiles, empty_count) + kBlock - 1) / kBlock;
}

template <class T, class Dot>
void finish_rows(const SplitRows& split, const std::int32_t* empty, std::int64_t empty_count, T alpha, T beta, T* y,
                 const Stream& stream, Dot dot) {
  launch(finish_rows_kernel<T, Dot>, std::max(split.tiles, empty_count), kBlock, stream, split.tiles,
         split.rows.as<SplitRow>(), split.head.as<T>(), split.tail.as<T>(), empty, empty_count, Column<T>{alpha, beta, y, 1},
         dot);
}

template <class T>
void finish_rows_of_columns(const SplitRows& split, const std::int32_t* empty, std::int64_t empty_count, T alpha, T beta,
                            T* y, std::int64_t ldy, const Stream& stream) {
  launch_grid(finish_rows_kernel<T, NoDot>, finish_parts(split, empty_count), split.columns, kBlock, 0, stream, split.tiles,
              split.rows.as<SplitRow>(), split.head.as<T>(), split.tail.as<T>(), empty, empty_count,
              Column<T>{alpha, beta, y, ldy}, NoDot{});
}
template void finish_rows_of_columns(const SplitRows&, const std::int32_t*, std::int64_t, float, float, float*, std::int64_t,
                                     const Stream&);
template void finish_rows_of_columns(const SplitRows&, const std::int32_t*, std::int64_t, double, double, double*,
                                     std::int64_t, const Stream&);

#define SHARDMAT_MAKE(T, Dot) \
  template void finish_rows(const SplitRows&, const std::int32_t*, std::int64_t, T, T, T*, const Stream&, Dot);
SHARDMAT_MAKE(float, NoDot)
SHARDMAT_MAKE(double, NoDot)
SHARDMAT_MAKE(float, DotInto<float>)
SHARDMAT_MAKE(double, DotInto<double>)

}  // namespace shardmat::cuda
