// Blocked CSR: 8, 16 or 32 neighbouring threads share a block row. B of them take the rows of one block, the next B those of
// the next block, so that the group reads whole blocks side by side and a thread reads one column index for B values.
#include <bit>

#include "kernels/base/error.h"
#include "kernels/cuda/launch.h"
#include "kernels/formats/bcsr.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

/// 2^log_group threads a block row. Threads left over when B does not divide the group only take part in the exchange of
/// sums.
template <class T, class Offset, int B>
__global__ void bcsr(std::int64_t rows, std::int64_t cols, std::int64_t block_rows, int log_group,
                     const Offset* __restrict__ block_ptr, const std::int32_t* __restrict__ block_col,
                     const T* __restrict__ values, T alpha, const T* __restrict__ x, T beta, T* __restrict__ y) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t block_row = thread >> log_group;
  const int group = 1 << log_group, lane = static_cast<int>(thread) & (group - 1);
  const int at_once = group / B, r = lane % B;
  T sum = 0;
  if (block_row < block_rows && lane < at_once * B) {
    const std::int64_t end = block_ptr[block_row + 1];
    for (std::int64_t k = block_ptr[block_row] + lane / B; k < end; k += at_once) {
      const std::int64_t column = static_cast<std::int64_t>(__ldg(block_col + k)) * B;
      const T* block = values + (k * B + r) * B;
      T value[B];
#pragma unroll
      for (int c = 0; c < B; ++c) value[c] = __ldg(block + c);
#pragma unroll
      for (int c = 0; c < B; ++c)
        if (column + c < cols) sum += value[c] * __ldg(x + column + c);
    }
  }
  T total = 0;
  for (int s = 0; s < at_once; ++s) total += __shfl_sync(0xffffffffu, sum, s * B + r, group);
  const std::int64_t row = block_row * B + r;
  if (lane < B && row < rows) y[row] = beta == T(0) ? alpha * total : alpha * total + beta * y[row];
}

template <class T, class Offset>
auto instance(int block) -> decltype(&bcsr<T, Offset, 2>) {
  switch (block) {
    case 2:
      return bcsr<T, Offset, 2>;
    case 3:
      return bcsr<T, Offset, 3>;
    case 4:
      return bcsr<T, Offset, 4>;
    case 5:
      return bcsr<T, Offset, 5>;
    default:
      return bcsr<T, Offset, 6>;
  }
}

}  // namespace

std::unique_ptr<Plan> make_bcsr(std::shared_ptr<Storage> storage, const Policy& policy, Stream&) {
  const int threads = policy.at("threads_per_block_row"), block_size = cuda::block_size_of(policy, "bcsr");
  if (threads != 8 && threads != 16 && threads != 32)
    throw Error(ErrorKind::usage, "bcsr: threads_per_block_row must be 8, 16 or 32");
  const int log_group = std::countr_zero(static_cast<unsigned>(threads));
  return typed_plan<BcsrStorage>(
      std::move(storage), [=]<class T>(const BcsrStorage& a, const Operands<T>& p, Stream& stream) {
        dispatch_offset(a.wide_offsets, [&](auto offset) {
          using Offset = typename decltype(offset)::type;
          cuda::launch(instance<T, Offset>(a.block()), a.block_rows << log_group, block_size, stream, a.rows, a.cols,
                       a.block_rows, log_group, a.block_ptr.as<Offset>(), a.block_col.as<std::int32_t>(), a.values.as<T>(),
                       p.alpha, p.x, p.beta, p.y);
        });
      });
}

}  // namespace shardmat
