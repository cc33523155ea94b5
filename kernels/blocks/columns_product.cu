#include "kernels/blocks/columns_product.h"

#include "kernels/base/error.h"
#include "kernels/blocks/product_end.h"
#include "kernels/cuda/launch.h"

namespace shardmat::blocks {
namespace {

constexpr int kThreads = 128, kWarp = 32, kMostColumns = 32;
/// From so many rows of blocks on, the packed format streams.
constexpr std::int64_t kManyRows = 100'000;
constexpr unsigned kAll = 0xffffffffu;

template <class T>
struct Arguments {
  const std::int64_t* __restrict__ start;
  const std::int32_t* __restrict__ column;
  const T* __restrict__ value;
  const T* __restrict__ x;
  std::int64_t count;
  int columns, width;  ///< width: a power of two that columns fit in
  bool wide;
};

/// A block, by vectors where its size allows: it begins at a multiple of them then.
template <class T, int kEntries>
__device__ __forceinline__ void load_block(const T* __restrict__ from, T (&to)[kEntries]) {
  if constexpr (kEntries * sizeof(T) % sizeof(uint4) == 0) {
#pragma unroll
    for (int v = 0; v < static_cast<int>(kEntries * sizeof(T) / sizeof(uint4)); ++v)
      reinterpret_cast<uint4*>(to)[v] = __ldg(reinterpret_cast<const uint4*>(from) + v);
  } else {
#pragma unroll
    for (int e = 0; e < kEntries; ++e) to[e] = __ldg(from + e);
  }
}

template <class T, int R, int C>
__global__ void __launch_bounds__(kThreads) multiply_columns(Arguments<T> a, Plain<T> end) {
  __shared__ T of_warp[kThreads / kWarp][R][kMostColumns];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
  const std::int64_t i = a.wide ? blockIdx.x : std::int64_t{blockIdx.x} * (kThreads / kWarp) + warp;
  const int c = lane % a.width, at_once = (a.wide ? kThreads : kWarp) / a.width;
  const bool real = i < a.count, mine = c < a.columns;
  const std::int64_t begin = real ? __ldg(a.start + i) : 0, last = real ? __ldg(a.start + i + 1) : 0;
  cuda::after_previous();
  T sum[R] = {};
  for (std::int64_t k = begin + (a.wide ? thread : lane) / a.width; k < last; k += at_once) {
    const std::int64_t node = __ldg(a.column + k);
    T of_x[C];
#pragma unroll
    for (int q = 0; q < C; ++q) of_x[q] = mine ? a.x[(node * C + q) * a.columns + c] : T(0);
    alignas(sizeof(uint4)) T block[R * C];
    load_block(a.value + k * (R * C), block);
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int q = 0; q < C; ++q) sum[r] = fma(block[r * C + q], of_x[q], sum[r]);
  }
#pragma unroll
  for (int r = 0; r < R; ++r)
    for (int other = kWarp / 2; other >= a.width; other /= 2) sum[r] += __shfl_xor_sync(kAll, sum[r], other);
  if (a.wide) {
#pragma unroll
    for (int r = 0; r < R; ++r) of_warp[warp][r][lane] = sum[r];
    __syncthreads();
    if (warp > 0) return;
#pragma unroll
    for (int r = 0; r < R; ++r)
      for (int other = 1; other < kThreads / kWarp; ++other) sum[r] += of_warp[other][r][lane];
  }
  if (!real || lane >= a.columns) return;
#pragma unroll
  for (int r = 0; r < R; ++r) end_entry(end, (i * R + r) * a.columns + c, sum[r]);
}

template <class T>
__global__ void store_values(const double* from, std::int64_t count, T* to) {
  const std::int64_t e = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (e < count) to[e] = static_cast<T>(from[e]);
}

/// Calls f(row size, column size) with sizes that are known when compiling. False if these have no kernel.
template <class F>
bool with_sizes(int row_size, int col_size, const F& f) {
  const auto with_columns = [&]<int R>(std::integral_constant<int, R> rows) {
    if (col_size == 1) return f(rows, std::integral_constant<int, 1>()), true;
    if (col_size == 2) return f(rows, std::integral_constant<int, 2>()), true;
    if (col_size == 3) return f(rows, std::integral_constant<int, 3>()), true;
    if (col_size == 6) return f(rows, std::integral_constant<int, 6>()), true;
    return false;
  };
  if (row_size == 1) return with_columns(std::integral_constant<int, 1>());
  if (row_size == 2) return with_columns(std::integral_constant<int, 2>());
  if (row_size == 3) return with_columns(std::integral_constant<int, 3>());
  if (row_size == 6) return with_columns(std::integral_constant<int, 6>());
  return false;
}

}  // namespace

bool ColumnsProduct::takes(int row_size, int col_size, int columns, std::int64_t count) {
  return columns <= kMostColumns && count < kManyRows && with_sizes(row_size, col_size, [](auto, auto) {});
}

ColumnsProduct::ColumnsProduct(const BlockRows& rows, ValueType type, int columns, Stream& stream)
    : type_(type),
      row_size_(rows.row_size),
      col_size_(rows.col_size),
      columns_(columns),
      count_(rows.count),
      stored_(rows, type, stream) {
  // A warp for each row leaves multiprocessors idle where there are few.
  wide_ = count_ < std::int64_t{8} * cuda::multiprocessors(stream.device()) && rows.blocks >= 16 * count_;
  update(rows, stream);
}

void ColumnsProduct::update(const BlockRows& rows, Stream& stream) {
  const std::int64_t entries = rows.blocks * rows.block_entries();
  dispatch(type_, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    cuda::launch(store_values<T>, entries, 256, stream, rows.value.as<double>(), entries, stored_.value.as<T>());
  });
  stream.synchronize();
}

void ColumnsProduct::multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const {
  int width = 1;
  while (width < columns_) width *= 2;
  const std::int64_t rows_a_block = wide_ ? 1 : kThreads / kWarp;
  dispatch(type_, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    const Arguments<T> arguments{stored_.start.as<std::int64_t>(),
                                 stored_.column.as<std::int32_t>(),
                                 stored_.value.as<T>(),
                                 static_cast<const T*>(x),
                                 count_,
                                 columns_,
                                 width,
                                 wide_};
    with_sizes(row_size_, col_size_, [&]<int R, int C>(std::integral_constant<int, R>, std::integral_constant<int, C>) {
      cuda::launch_grid_early(multiply_columns<T, R, C>, (count_ + rows_a_block - 1) / rows_a_block, 1, dim3(kThreads), 0,
                              stream, arguments, plain_end<T>(alpha, beta, y));
    });
  });
}

}  // namespace shardmat::blocks
