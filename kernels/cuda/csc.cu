// CSC, 1, 2, 4 … 32 neighbouring threads a column, each adding its products to y atomically.
#include <bit>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/scale.h"
#include "kernels/formats/csc.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

template <class T>
__global__ void csc(std::int64_t cols, int log2_threads, const std::int64_t* __restrict__ col_ptr,
                    const std::int32_t* __restrict__ row_idx, const T* __restrict__ values, T alpha, const T* __restrict__ x,
                    T* __restrict__ y) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t column = thread >> log2_threads;
  if (column >= cols) return;
  const int threads = 1 << log2_threads;
  const T scaled = alpha * x[column];
  const std::int64_t end = col_ptr[column + 1];
  for (std::int64_t k = col_ptr[column] + (thread & (threads - 1)); k < end; k += threads)
    atomicAdd(y + row_idx[k], values[k] * scaled);
}

}  // namespace

std::unique_ptr<Plan> make_csc(std::shared_ptr<Storage> storage, const Policy& policy, Stream&) {
  const int threads = policy.at("threads_per_column"), block_size = cuda::block_size_of(policy, "csc");
  if (threads < 1 || threads > 32 || (threads & (threads - 1)) != 0)
    throw Error(ErrorKind::usage, "csc: threads_per_column must be 1, 2, 4, 8, 16 or 32");
  const int log2_threads = std::countr_zero(static_cast<unsigned>(threads));
  return typed_plan<CscStorage>(
      std::move(storage),
      [=]<class T>(const CscStorage& a, const Operands<T>& v, Stream& stream) {
        cuda::scale(a.rows, v.beta, v.y, stream);
        cuda::launch(csc<T>, a.cols << log2_threads, block_size, stream, a.cols, log2_threads, a.col_ptr.as<std::int64_t>(),
                     a.row_idx.as<std::int32_t>(), a.values.as<T>(), v.alpha, v.x, v.y);
      },
      false);
}

}  // namespace shardmat
