// COO, one thread a nonzero, each adding its product to y atomically.
#include "kernels/cuda/launch.h"
#include "kernels/cuda/parts.h"
#include "kernels/cuda/scale.h"

namespace shardmat {
namespace {

template <class T>
__global__ void coo(std::int64_t count, const std::int32_t* __restrict__ row, const std::int32_t* __restrict__ col_idx,
                    const T* __restrict__ values, T alpha, const T* __restrict__ x, T* __restrict__ y) {
  const std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k < count) atomicAdd(y + row[k], alpha * (values[k] * x[col_idx[k]]));
}

}  // namespace

template <class T>
void cuda::add_coo(const CooEntries& a, int block_size, const Operands<T>& v, Stream& stream) {
  launch(coo<T>, a.count, block_size, stream, a.count, a.row.as<std::int32_t>(), a.col_idx.as<std::int32_t>(),
         a.values.as<T>(), v.alpha, v.x, v.y);
}

template void cuda::add_coo(const CooEntries&, int, const Operands<float>&, Stream&);
template void cuda::add_coo(const CooEntries&, int, const Operands<double>&, Stream&);

std::unique_ptr<Plan> make_coo(std::shared_ptr<Storage> storage, const Policy& policy, Stream&) {
  return typed_plan<CooStorage>(
      std::move(storage),
      [block_size = cuda::block_size_of(policy, "coo")]<class T>(const CooStorage& a, const Operands<T>& v, Stream& stream) {
        cuda::scale(a.rows, v.beta, v.y, stream);
        cuda::add_coo(a.entries, block_size, v, stream);
      },
      false);
}

}  // namespace shardmat
