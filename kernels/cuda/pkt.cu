// Packets, one thread block each: the threads stage the window of x in shared memory, then each multiplies one row, first
// what lies inside the window, then the row's rest.
#include "kernels/cuda/launch.h"
#include "kernels/formats/pkt.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

constexpr int kUnroll = 4;

/// blockDim.x = packet_rows; shared memory for the widest window. `order`: null, or the row and column of each place.
template <class T, class Offset>
__global__ void pkt(std::int64_t rows, const std::int32_t* __restrict__ order, const std::int32_t* __restrict__ window_first,
                    const std::int32_t* __restrict__ window_columns, const Offset* __restrict__ slice_ptr,
                    const std::uint16_t* __restrict__ local_columns, const T* __restrict__ local_values,
                    const Offset* __restrict__ rest_ptr, const std::int32_t* __restrict__ rest_columns,
                    const T* __restrict__ rest_values, T alpha, const T* __restrict__ x, T beta, T* __restrict__ y) {
  extern __shared__ __align__(16) unsigned char shared[];
  T* staged = reinterpret_cast<T*>(shared);
  const int columns = window_columns[blockIdx.x];
  const std::int32_t first = window_first[blockIdx.x];
  for (int c = static_cast<int>(threadIdx.x); c < columns; c += static_cast<int>(blockDim.x))
    staged[c] = __ldg(x + (order == nullptr ? first + c : __ldg(order + first + c)));
  __syncthreads();

  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const std::int64_t slice = row / kPktSlice, end = slice_ptr[slice + 1];
  T sum = 0;
  for (std::int64_t k = slice_ptr[slice] + row % kPktSlice; k < end; k += kUnroll * kPktSlice) {
    std::uint16_t column[kUnroll];
    T value[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const bool inside = k + u * kPktSlice < end;
      column[u] = inside ? __ldg(local_columns + k + u * kPktSlice) : kPktPadding;
      value[u] = inside ? __ldg(local_values + k + u * kPktSlice) : T(0);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (column[u] != kPktPadding) sum += value[u] * staged[column[u]];
  }
  const Offset rest_end = rest_ptr[row + 1];
  for (Offset k = rest_ptr[row]; k < rest_end; ++k) sum += rest_values[k] * __ldg(x + rest_columns[k]);
  const std::int64_t out = order == nullptr ? row : order[row];
  y[out] = beta == T(0) ? alpha * sum : alpha * sum + beta * y[out];
}

}  // namespace

std::unique_ptr<Plan> make_pkt(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  return typed_plan<PktStorage>(std::move(storage), []<class T>(const PktStorage& a, const Operands<T>& p, Stream& stream) {
    dispatch_offset(a.wide_offsets, [&](auto offset) {
      using Offset = typename decltype(offset)::type;
      cuda::launch_blocks(pkt<T, Offset>, a.pattern->packets(), static_cast<int>(a.pattern->packet_rows),
                          static_cast<std::size_t>(a.widest_window) * sizeof(T), stream, a.rows,
                          a.order.bytes() > 0 ? a.order.as<std::int32_t>() : nullptr, a.window_first.as<std::int32_t>(),
                          a.window_columns.as<std::int32_t>(), a.slice_ptr.as<Offset>(), a.local_columns.as<std::uint16_t>(),
                          a.local_values.as<T>(), a.rest_ptr.as<Offset>(), a.rest_columns.as<std::int32_t>(),
                          a.rest_values.as<T>(), p.alpha, p.x, p.beta, p.y);
    });
  });
}

}  // namespace shardmat
