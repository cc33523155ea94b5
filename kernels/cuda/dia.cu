// DIA, one thread a row: neighbouring threads read neighbouring values and neighbouring entries of x.
#include "kernels/cuda/launch.h"
#include "kernels/formats/dia.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

template <class T>
__global__ void dia(std::int64_t rows, std::int64_t cols, std::int64_t diagonals, const std::int64_t* __restrict__ offsets,
                    const T* __restrict__ values, T alpha, const T* __restrict__ x, T beta, T* __restrict__ y) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  T sum = 0;
  for (std::int64_t d = 0; d < diagonals; ++d) {
    const std::int64_t column = row + offsets[d];
    if (column >= 0 && column < cols) sum += values[d * rows + row] * x[column];
  }
  y[row] = beta == T(0) ? alpha * sum : alpha * sum + beta * y[row];
}

}  // namespace

std::unique_ptr<Plan> make_dia(std::shared_ptr<Storage> storage, const Policy& policy, Stream&) {
  return typed_plan<DiaStorage>(std::move(storage), [block_size = cuda::block_size_of(policy, "dia")]<class T>(
                                                        const DiaStorage& a, const Operands<T>& v, Stream& stream) {
    cuda::launch(dia<T>, a.rows, block_size, stream, a.rows, a.cols, a.diagonals, a.offsets.as<std::int64_t>(),
                 a.values.as<T>(), v.alpha, v.x, v.beta, v.y);
  });
}

}  // namespace shardmat
