// ELL and ELLPACK-R, one thread a row: neighbouring threads read neighbouring entries.
#include "kernels/cuda/launch.h"
#include "kernels/cuda/parts.h"

namespace shardmat {
namespace {

template <class T>
__global__ void ell(std::int64_t rows, std::int64_t width, const std::int32_t* __restrict__ col_idx,
                    const T* __restrict__ values, T alpha, const T* __restrict__ x, T beta, T* __restrict__ y) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  T sum = 0;
  for (std::int64_t k = row; k < width * rows; k += rows) {
    // Going on behind the first padding lets the loads of several entries overlap.
    const std::int32_t column = col_idx[k];
    if (column >= 0) sum += values[k] * x[column];
  }
  y[row] = beta == T(0) ? alpha * sum : alpha * sum + beta * y[row];
}

template <class T>
__global__ void ell_r(std::int64_t rows, const std::int32_t* __restrict__ row_lengths,
                      const std::int32_t* __restrict__ col_idx, const T* __restrict__ values, T alpha,
                      const T* __restrict__ x, T beta, T* __restrict__ y) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  T sum = 0;
  const std::int64_t end = row_lengths[row] * rows;
  for (std::int64_t k = row; k < end; k += rows) sum += values[k] * x[col_idx[k]];
  y[row] = beta == T(0) ? alpha * sum : alpha * sum + beta * y[row];
}

}  // namespace

template <class T>
void cuda::multiply_ell(std::int64_t rows, const EllArrays& a, int block_size, const Operands<T>& v, Stream& stream) {
  launch(ell<T>, rows, block_size, stream, rows, a.width, a.col_idx.as<std::int32_t>(), a.values.as<T>(), v.alpha, v.x,
         v.beta, v.y);
}

template void cuda::multiply_ell(std::int64_t, const EllArrays&, int, const Operands<float>&, Stream&);
template void cuda::multiply_ell(std::int64_t, const EllArrays&, int, const Operands<double>&, Stream&);

std::unique_ptr<Plan> make_ell(std::shared_ptr<Storage> storage, const Policy& policy, Stream&) {
  return typed_plan<EllStorage>(std::move(storage), [block_size = cuda::block_size_of(policy, "ell")]<class T>(
                                                        const EllStorage& a, const Operands<T>& v, Stream& stream) {
    cuda::multiply_ell(a.rows, a.ell, block_size, v, stream);
  });
}

std::unique_ptr<Plan> make_ell_r(std::shared_ptr<Storage> storage, const Policy& policy, Stream&) {
  return typed_plan<EllStorage>(std::move(storage), [block_size = cuda::block_size_of(policy, "ell_r")]<class T>(
                                                        const EllStorage& a, const Operands<T>& v, Stream& stream) {
    cuda::launch(ell_r<T>, a.rows, block_size, stream, a.rows, a.row_lengths.as<std::int32_t>(),
                 a.ell.col_idx.as<std::int32_t>(), a.ell.values.as<T>(), v.alpha, v.x, v.beta, v.y);
  });
}

}  // namespace shardmat
