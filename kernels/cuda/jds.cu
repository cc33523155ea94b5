// JDS and its transpose, one thread a sorted row, so that the threads of a warp end together.
#include "kernels/cuda/launch.h"
#include "kernels/formats/jds.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

template <class T>
__global__ void jds(std::int64_t rows, const std::int32_t* __restrict__ row_index, const std::int64_t* __restrict__ starts,
                    const std::int32_t* __restrict__ col_idx, const T* __restrict__ values, T alpha, const T* __restrict__ x,
                    T beta, T* __restrict__ y) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= rows) return;
  T sum = 0;
  const std::int64_t end = starts[i + 1];
  for (std::int64_t k = starts[i]; k < end; ++k) sum += values[k] * x[col_idx[k]];
  const std::int32_t row = row_index[i];
  y[row] = beta == T(0) ? alpha * sum : alpha * sum + beta * y[row];
}

template <class T>
__global__ void jds_t(std::int64_t rows, std::int64_t diagonals, const std::int32_t* __restrict__ row_index,
                      const std::int64_t* __restrict__ starts, const std::int32_t* __restrict__ col_idx,
                      const T* __restrict__ values, T alpha, const T* __restrict__ x, T beta, T* __restrict__ y) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= rows) return;
  T sum = 0;
  for (std::int64_t d = 0; d < diagonals; ++d) {
    const std::int64_t k = starts[d] + i;
    if (k >= starts[d + 1]) break;
    sum += values[k] * x[col_idx[k]];
  }
  const std::int32_t row = row_index[i];
  y[row] = beta == T(0) ? alpha * sum : alpha * sum + beta * y[row];
}

}  // namespace

std::unique_ptr<Plan> make_jds(std::shared_ptr<Storage> storage, const Policy& policy, Stream&) {
  return typed_plan<JdsStorage>(std::move(storage), [block_size = cuda::block_size_of(policy, "jds")]<class T>(
                                                        const JdsStorage& a, const Operands<T>& v, Stream& stream) {
    cuda::launch(jds<T>, a.rows, block_size, stream, a.rows, a.row_index.as<std::int32_t>(), a.starts.as<std::int64_t>(),
                 a.col_idx.as<std::int32_t>(), a.values.as<T>(), v.alpha, v.x, v.beta, v.y);
  });
}

std::unique_ptr<Plan> make_jds_t(std::shared_ptr<Storage> storage, const Policy& policy, Stream&) {
  return typed_plan<JdsStorage>(std::move(storage), [block_size = cuda::block_size_of(policy, "jds_t")]<class T>(
                                                        const JdsStorage& a, const Operands<T>& v, Stream& stream) {
    cuda::launch(jds_t<T>, a.rows, block_size, stream, a.rows, a.diagonals, a.row_index.as<std::int32_t>(),
                 a.starts.as<std::int64_t>(), a.col_idx.as<std::int32_t>(), a.values.as<T>(), v.alpha, v.x, v.beta, v.y);
  });
}

}  // namespace shardmat
