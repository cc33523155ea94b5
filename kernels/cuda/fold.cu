// Folded rows in two launches: one thread a piece leaves the piece's sum in the plan's workspace, then 1 or 32 threads a row
// add its pieces, in a fixed order and without atomics, so that the result does not depend on scheduling.
#include "kernels/base/error.h"
#include "kernels/cuda/launch.h"
#include "kernels/formats/fold.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

constexpr int kUnroll = 4;

template <class T>
__global__ void fold_pieces(std::int64_t pieces, std::int64_t width, const std::int32_t* __restrict__ col_idx,
                            const T* __restrict__ values, const T* __restrict__ x, T* __restrict__ sums) {
  const std::int64_t piece = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (piece >= pieces) return;
  T sum = 0;
  for (std::int64_t j = 0; j < width; j += kUnroll) {
    std::int32_t column[kUnroll];
    T value[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const bool inside = j + u < width;
      column[u] = inside ? __ldg(col_idx + (j + u) * pieces + piece) : -1;
      value[u] = inside ? __ldg(values + (j + u) * pieces + piece) : T(0);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (column[u] >= 0) sum += value[u] * __ldg(x + column[u]);
  }
  sums[piece] = sum;
}

template <class T, class Offset, int NT>
__global__ void fold_rows(std::int64_t rows, const Offset* __restrict__ fold_ptr, const T* __restrict__ sums, T alpha,
                          T beta, T* __restrict__ y) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t row = thread / NT;
  const int lane = static_cast<int>(thread % NT);
  T sum = 0;
  if (row < rows) {
    const std::int64_t end = fold_ptr[row + 1];
    for (std::int64_t piece = fold_ptr[row] + lane; piece < end; piece += NT) sum += sums[piece];
  }
#pragma unroll
  for (int offset = NT / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset, NT);
  if (row < rows && lane == 0) y[row] = beta == T(0) ? alpha * sum : alpha * sum + beta * y[row];
}

}  // namespace

std::unique_ptr<Plan> make_fold(std::shared_ptr<Storage> storage, const Policy& policy, Stream&) {
  const int threads = policy.at("threads_per_row"), block_size = cuda::block_size_of(policy, "fold");
  if (threads != 1 && threads != 32) throw Error(ErrorKind::usage, "fold: threads_per_row must be 1 or 32");
  const auto& fold = static_cast<const FoldStorage&>(*storage);
  const auto sums =
      std::make_shared<const Buffer>(fold.device, static_cast<std::size_t>(fold.pieces()) * size_of(fold.type));
  return typed_plan<FoldStorage>(
      std::move(storage), [=]<class T>(const FoldStorage& a, const Operands<T>& p, Stream& stream) {
        cuda::launch(fold_pieces<T>, a.pieces(), block_size, stream, a.pieces(), a.width, a.col_idx.as<std::int32_t>(),
                     a.values.as<T>(), p.x, sums->as<T>());
        dispatch_offset(a.wide_offsets, [&](auto offset) {
          using Offset = typename decltype(offset)::type;
          cuda::launch(threads == 1 ? fold_rows<T, Offset, 1> : fold_rows<T, Offset, 32>, a.rows * threads, block_size,
                       stream, a.rows, a.fold_ptr.as<Offset>(), sums->as<T>(), p.alpha, p.beta, p.y);
        });
      });
}

}  // namespace shardmat
