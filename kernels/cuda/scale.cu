#include "kernels/cuda/scale.h"

#include "kernels/cuda/launch.h"

namespace shardmat::cuda {
namespace {

template <class T>
__global__ void scale_entries(std::int64_t n, T beta, T* __restrict__ y) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] *= beta;
}

}  // namespace

template <class T>
void scale(std::int64_t n, T beta, T* y, Stream& stream) {
  if (beta == T(0)) fill_bytes(y, 0, static_cast<std::size_t>(n) * sizeof(T), stream);
  else if (beta != T(1)) launch(scale_entries<T>, n, 256, stream, n, beta, y);
}

template void scale(std::int64_t, float, float*, Stream&);
template void scale(std::int64_t, double, double*, Stream&);

}  // namespace shardmat::cuda
