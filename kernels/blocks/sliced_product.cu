#include "kernels/blocks/sliced_product.h"

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/blocks/block_product.h"
#include "kernels/blocks/product_end.h"
#include "kernels/blocks/small_blocks.h"

namespace shardmat::blocks {
namespace {

constexpr int kWindow = 1024;  ///< rows that are sorted together
constexpr int kThreadsOfSlices = 128;

template <class T>
struct Slices {
  const std::int64_t* __restrict__ start;
  const std::int32_t* __restrict__ order, * __restrict__ length, * __restrict__ column;
  const T* __restrict__ value;
  const T* __restrict__ x;
  std::int64_t count;
};

template <class T, int R, int C, class End>
__global__ void __launch_bounds__(kThreadsOfSlices) multiply_slices(Slices<T> a, End end) {
  constexpr int kEntries = R * C, kAhead = kEntries <= 4 ? 8 : kEntries <= 9 ? 3 : kEntries <= 18 ? 2 : 1;
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kThreadsOfSlices + threadIdx.x, slice = at / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const bool real = at < a.count;
  const std::int64_t i = real ? __ldg(a.order + at) : 0;
  const int length = real ? __ldg(a.length + at) : 0;
  const std::int64_t first = real ? __ldg(a.start + slice) : 0;
  const T* value = a.value + first * (kEntries * kLanes) + lane;
  const std::int32_t* column = a.column + first * kLanes + lane;
  cuda::after_previous();
  T sum[R] = {};
  for (int s = 0; s < length; s += kAhead) {
    T of_a[kAhead][kEntries], of_x[kAhead][C];
    std::int64_t from[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const bool there = s + u < length;
      from[u] = there ? std::int64_t{__ldcs(column + (s + u) * kLanes)} * C : -1;
#pragma unroll
      for (int e = 0; e < kEntries; ++e) of_a[u][e] = there ? __ldcs(value + ((s + u) * kEntries + e) * kLanes) : T(0);
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u)
#pragma unroll
      for (int c = 0; c < C; ++c) of_x[u][c] = from[u] >= 0 ? a.x[from[u] + c] : T(0);
#pragma unroll
    for (int u = 0; u < kAhead; ++u)
#pragma unroll
      for (int c = 0; c < C; ++c)
#pragma unroll
        for (int r = 0; r < R; ++r) sum[r] = fma(of_a[u][r * C + c], of_x[u][c], sum[r]);
  }
  if (real) end_rows<R>(end, a.x, i, sum);
}

__global__ void key_rows(std::int64_t count, const std::int64_t* start, std::int32_t* key) {
  constexpr std::int64_t kMostLength = 1023;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const std::int64_t length = min(start[i + 1] - start[i], kMostLength);
  key[i] = static_cast<std::int32_t>(i / kWindow * (kMostLength + 1) + kMostLength - length);
}

__global__ void measure_slices(std::int64_t count, std::int64_t slices, const std::int64_t* start, const std::int32_t* order,
                               std::int32_t* length, std::int64_t* slots) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= slices * kLanes) return;
  const int mine = at < count ? static_cast<int>(start[order[at] + 1] - start[order[at]]) : 0;
  if (at < count) length[at] = mine;
  int longest = mine;
  for (int other = kLanes / 2; other > 0; other /= 2) longest = max(longest, __shfl_xor_sync(0xffffffffu, longest, other));
  if (at % kLanes == 0) slots[at / kLanes] = longest;
}

/// A warp a slice; columns if `to_column` is not null.
template <class T, int kEntries>
__global__ void fill_slices(std::int64_t count, const std::int64_t* start, const std::int32_t* column, const double* value,
                            const std::int32_t* order, const std::int64_t* first, std::int32_t* to_column, T* to) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, slice = at / kLanes;
  if (slice * kLanes >= count) return;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t i = at < count ? order[at] : -1, begin = i < 0 ? 0 : start[i],
                     length = i < 0 ? 0 : start[i + 1] - begin;
  for (std::int64_t s = first[slice]; s < first[slice + 1]; ++s) {
    const std::int64_t k = s - first[slice];
    if (to_column != nullptr) to_column[s * kLanes + lane] = k < length ? column[begin + k] : 0;
    for (int e = 0; e < kEntries; ++e)
      to[(s * kEntries + e) * kLanes + lane] = k < length ? static_cast<T>(value[(begin + k) * kEntries + e]) : T(0);
  }
}

/// Calls f(R, C) for the sizes that have a kernel; false: they have none.
template <class F>
bool with_sizes(int r, int c, const F& f) {
  const auto call = [&]<int R, int C>(std::integral_constant<int, R> rows, std::integral_constant<int, C> columns) {
    if (r != R || c != C) return false;
    f(rows, columns);
    return true;
  };
  using std::integral_constant;
  return call(integral_constant<int, 1>(), integral_constant<int, 1>()) ||
         call(integral_constant<int, 2>(), integral_constant<int, 2>()) ||
         call(integral_constant<int, 2>(), integral_constant<int, 3>()) ||
         call(integral_constant<int, 3>(), integral_constant<int, 3>()) ||
         call(integral_constant<int, 3>(), integral_constant<int, 6>()) ||
         call(integral_constant<int, 6>(), integral_constant<int, 6>());
}

template <class T>
Slices<T> slices_of(const Buffer& start, const Buffer& order, const Buffer& length, const Buffer& column,
                    const Buffer& value, const void* x, std::int64_t count) {
  return {start.as<std::int64_t>(),
          order.as<std::int32_t>(),
          length.as<std::int32_t>(),
          column.as<std::int32_t>(),
          value.as<T>(),
          static_cast<const T*>(x),
          count};
}

template <class T, class End>
void run(const Slices<T>& a, const End& end, int row_size, int col_size, Stream& stream) {
  with_sizes(row_size, col_size, [&]<int R, int C>(std::integral_constant<int, R>, std::integral_constant<int, C>) {
    cuda::launch_grid_early(multiply_slices<T, R, C, End>, (a.count + kThreadsOfSlices - 1) / kThreadsOfSlices, 1,
                            dim3(kThreadsOfSlices), 0, stream, a, end);
  });
}

}  // namespace

Buffer rows_by_length(const BlockRows& rows, Stream& stream) {
  const std::int64_t count = rows.count;
  const Buffer key = array<std::int32_t>(count, stream), sorted = array<std::int32_t>(count, stream);
  Buffer order = array<std::int32_t>(count, stream);
  cuda::launch(key_rows, count, kThreads, stream, count, rows.start.as<std::int64_t>(), key.as<std::int32_t>());
  sort_by_key(key.as<std::int32_t>(), count, count + kWindow, sorted.as<std::int32_t>(), order.as<std::int32_t>(), stream);
  return order;
}

bool SlicedProduct::takes(int row_size, int col_size) {
  return with_sizes(row_size, col_size, [](auto, auto) {});
}

SlicedProduct::SlicedProduct(const BlockRows& rows, ValueType type, Stream& stream)
    : type_(type),
      row_size_(rows.row_size),
      col_size_(rows.col_size),
      count_(rows.count),
      slices_((rows.count + kLanes - 1) / kLanes) {
  order_ = rows_by_length(rows, stream), length_ = array<std::int32_t>(count_, stream);
  start_ = array<std::int64_t>(slices_ + 1, stream);
  cuda::launch(measure_slices, slices_ * kLanes, kThreads, stream, count_, slices_, rows.start.as<std::int64_t>(),
               order_.as<std::int32_t>(), length_.as<std::int32_t>(), start_.as<std::int64_t>());
  const std::int64_t slots = sum_before(start_.as<std::int64_t>(), slices_, stream),
                     values = slots * kLanes * rows.block_entries();
  require_memory(stream.device(), slots * kLanes * 4 + values * static_cast<std::int64_t>(size_of(type)),
                 "a level of multigrid");
  column_ = array<std::int32_t>(slots * kLanes, stream);
  value_ = Buffer(stream.device(), static_cast<std::size_t>(values) * size_of(type));
  fill(rows, true, stream);
}

void SlicedProduct::fill(const BlockRows& rows, bool with_columns, Stream& stream) {
  dispatch(type_, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    with_sizes(row_size_, col_size_, [&]<int R, int C>(std::integral_constant<int, R>, std::integral_constant<int, C>) {
      cuda::launch(fill_slices<T, R * C>, slices_ * kLanes, kThreads, stream, count_, rows.start.as<std::int64_t>(),
                   rows.column.as<std::int32_t>(), rows.value.as<double>(), order_.as<std::int32_t>(),
                   start_.as<std::int64_t>(), with_columns ? column_.as<std::int32_t>() : nullptr, value_.as<T>());
    });
  });
  stream.synchronize();
}

void SlicedProduct::update(const BlockRows& rows, Stream& stream) { fill(rows, false, stream); }

void SlicedProduct::multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const {
  dispatch(type_, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    run(slices_of<T>(start_, order_, length_, column_, value_, x, count_), plain_end<T>(alpha, beta, y), row_size_,
        col_size_, stream);
  });
}

void SlicedProduct::multiply(const void* d, const SmootherStep& step, Stream& stream) const {
  dispatch(type_, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    run(slices_of<T>(start_, order_, length_, column_, value_, d, count_), step_end<T>(step), row_size_, col_size_, stream);
  });
}

std::int64_t SlicedProduct::bytes() const {
  std::int64_t bytes = 0;
  for (const Buffer* const one : {&start_, &order_, &length_, &column_, &value_})
    bytes += static_cast<std::int64_t>(one->bytes());
  return bytes;
}

}  // namespace shardmat::blocks
