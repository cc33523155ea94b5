#include "kernels/blocks/block_product.h"

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/base/known_size.h"
#include "kernels/blocks/product_end.h"
#include "kernels/cuda/launch.h"

namespace shardmat::blocks {
namespace {

constexpr int kThreads = 128;  ///< of a thread block
constexpr int kWarp = 32;
/// From so many rows of blocks on, a lane has one: an H200 needs some hundred thousand lanes to be busy.
constexpr std::int64_t kManyRows = 100'000;

template <class T>
struct Arguments {
  const std::int64_t* __restrict__ start;
  const std::int32_t* __restrict__ column;
  const T* __restrict__ value;
  const T* __restrict__ x;
  std::int64_t count;
  int col_size;
  unsigned reciprocal;  ///< of col_size, times 2³², rounded up; 0 for 1
  int team;             ///< lanes that have a row of blocks; kThreads: the thread block
};

template <class T, int R, bool kWide, class End>
__global__ void __launch_bounds__(kThreads) multiply_blocks(Arguments<T> a, End end) {
  constexpr int kAhead = R <= 3 ? 4 : R <= 6 ? 2 : 1;
  const int team = kWide ? kThreads : a.team;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t i = kWide ? blockIdx.x : thread / team;
  const int lane = static_cast<int>(threadIdx.x) & (team - 1);
  const bool real = i < a.count;
  const std::int64_t begin = real ? __ldg(a.start + i) : 0;
  const int entries = real ? static_cast<int>(__ldg(a.start + i + 1) - begin) * a.col_size : 0;
  const T* const value = a.value + begin * a.col_size * R;
  const std::int32_t* const column = a.column + begin;
  cuda::after_previous();
  T sum[R] = {};
  for (int j = lane; j < entries; j += team * kAhead) {
    T of_a[kAhead][R], of_x[kAhead];
    std::int64_t at[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int e = j + u * team, k = a.reciprocal == 0 ? e : static_cast<int>(__umulhi(e, a.reciprocal));
      at[u] = e < entries ? static_cast<std::int64_t>(__ldg(column + k)) * a.col_size + (e - k * a.col_size) : -1;
#pragma unroll
      for (int r = 0; r < R; ++r)
        of_a[u][r] = e < entries ? __ldcs(value + static_cast<std::int64_t>(r) * entries + e) : T(0);
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) of_x[u] = at[u] >= 0 ? a.x[at[u]] : T(0);
#pragma unroll
    for (int u = 0; u < kAhead; ++u)
#pragma unroll
      for (int r = 0; r < R; ++r) sum[r] = fma(of_a[u][r], of_x[u], sum[r]);
  }
  const int width = team < kWarp ? team : kWarp;
#pragma unroll
  for (int r = 0; r < R; ++r)
    for (int other = width / 2; other > 0; other /= 2) sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], other);
  if constexpr (kWide) {
    __shared__ T of_warp[kThreads / kWarp][R];
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    if (threadIdx.x % kWarp == 0)
      for (int r = 0; r < R; ++r) of_warp[warp][r] = sum[r];
    __syncthreads();
    if (warp > 0) return;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      sum[r] = of_warp[0][r];
      for (int w = 1; w < kThreads / kWarp; ++w) sum[r] += of_warp[w][r];
    }
  }
  T mine = 0;
#pragma unroll
  for (int r = 0; r < R; ++r) mine = lane == r ? sum[r] : mine;
  end_row<R>(end, a.x, a.count, i, lane, width, mine);
}

/// values[r][k][c] of each row of blocks from values[k][r][c]; a warp each.
template <class T>
__global__ void store_values(const std::int64_t* start, const double* from, std::int64_t count, int row_size, int col_size,
                             T* to) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp;
  if (i >= count) return;
  const std::int64_t begin = start[i], size = static_cast<std::int64_t>(row_size) * col_size;
  const int entries = static_cast<int>(start[i + 1] - begin) * col_size;
  for (int j = static_cast<int>(threadIdx.x) % kWarp; j < entries * row_size; j += kWarp) {
    const int r = j / entries, e = j - r * entries, k = e / col_size, c = e - k * col_size;
    to[begin * size + j] = static_cast<T>(from[(begin + k) * size + r * col_size + c]);
  }
}

template <class T, class End>
void run(const Arguments<T>& a, const End& end, int row_size, Stream& stream) {
  with_known_size<kMostUnknowns>(row_size, [&]<int R>(std::integral_constant<int, R>) {
    if (a.team == kThreads)
      return cuda::launch_grid_early(multiply_blocks<T, R, true, End>, a.count, 1, dim3(kThreads), 0, stream, a, end);
    const std::int64_t at_once = kThreads / a.team;
    cuda::launch_grid_early(multiply_blocks<T, R, false, End>, (a.count + at_once - 1) / at_once, 1, dim3(kThreads), 0,
                            stream, a, end);
  });
}

/// Enough lanes for a row's entries, and for its rows; the whole thread block where so few rows are long that lanes would
/// wait for each other's loads. `at_once`: entries that a lane loads together.
int team_of(const BlockRows& rows, int at_once, Device device) {
  const std::int64_t entries = rows.count == 0 ? 0 : rows.blocks * rows.col_size / rows.count / at_once;
  const std::int64_t busy = 8 * cuda::multiprocessors(device);
  if (rows.count < busy && entries >= 2 * kWarp) return kThreads;
  int team = 4;
  while (team < kWarp && (team < rows.row_size || 3 * team < 2 * entries)) team *= 2;
  return team;
}

}  // namespace

BlockProduct::BlockProduct(const BlockRows& rows, ValueType type, bool is_square, Stream& stream, const Buffer* modes)
    : type_(sum_type(type)),
      row_size_(rows.row_size),
      col_size_(rows.col_size),
      team_(team_of(rows, 1, stream.device())),
      count_(rows.count) {
  if (count_ >= kManyRows && SingleProduct::takes(rows, type, stream)) {
    single_.emplace(rows, type, is_square, modes, stream);
    return;
  }
  if (type == ValueType::f16 && HalfProduct::takes(row_size_, col_size_)) {
    half_.emplace(rows, modes, count_ >= kManyRows, team_of(rows, 2, stream.device()), stream);
    return;
  }
  if (count_ >= kManyRows && SlicedProduct::takes(row_size_, col_size_)) {
    sliced_.emplace(rows, type_, stream);
    return;
  }
  stored_ = StoredBlocks(rows, type_, stream);
  update(rows, stream);
}

void BlockProduct::update(const BlockRows& rows, Stream& stream) {
  if (single_) return single_->update(rows, stream);
  if (half_) return half_->update(rows, stream);
  if (sliced_) return sliced_->update(rows, stream);
  dispatch(type_, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    cuda::launch(store_values<T>, count_ * kWarp, 256, stream, stored_.start.as<std::int64_t>(), rows.value.as<double>(),
                 count_, row_size_, col_size_, stored_.value.as<T>());
  });
  stream.synchronize();
}

namespace {

template <class T>
Arguments<T> arguments(const StoredBlocks& a, const void* x, std::int64_t count, int col_size, int team) {
  const std::uint64_t reciprocal = ((std::uint64_t{1} << 32) + static_cast<std::uint64_t>(col_size) - 1) / col_size;
  return {a.start.as<std::int64_t>(),
          a.column.as<std::int32_t>(),
          a.value.as<T>(),
          static_cast<const T*>(x),
          count,
          col_size,
          col_size == 1 ? 0u : static_cast<unsigned>(reciprocal),
          team};
}

}  // namespace

void BlockProduct::multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const {
  if (single_) return single_->multiply(alpha, x, beta, y, stream);
  if (half_) return half_->multiply(alpha, x, beta, y, stream);
  if (sliced_) return sliced_->multiply(alpha, x, beta, y, stream);
  dispatch(type_, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    run(arguments<T>(stored_, x, count_, col_size_, team_), plain_end<T>(alpha, beta, y), row_size_, stream);
  });
}

void BlockProduct::multiply(const void* d, const SmootherStep& step, Stream& stream) const {
  if (single_) return single_->multiply(d, step, stream);
  if (half_) return half_->multiply(d, step, stream);
  if (sliced_) return sliced_->multiply(d, step, stream);
  dispatch(type_, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    run(arguments<T>(stored_, d, count_, col_size_, team_), step_end<T>(step), row_size_, stream);
  });
}

std::int64_t BlockProduct::bytes() const {
  if (single_) return single_->bytes();
  if (half_) return half_->bytes();
  if (sliced_) return sliced_->bytes();
  return stored_.bytes();
}

}  // namespace shardmat::blocks
