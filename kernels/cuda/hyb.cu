// HYB: the ELL part writes y, then the rest is added to it.
#include "kernels/cuda/launch.h"
#include "kernels/cuda/parts.h"
#include "kernels/formats/hyb.h"

namespace shardmat {

std::unique_ptr<Plan> make_hyb(std::shared_ptr<Storage> storage, const Policy& policy, Stream&) {
  const bool no_rest = static_cast<const HybStorage&>(*storage).rest.count == 0;
  return typed_plan<HybStorage>(
      std::move(storage),
      [block_size = cuda::block_size_of(policy, "hyb")]<class T>(const HybStorage& a, const Operands<T>& v, Stream& stream) {
        cuda::multiply_ell(a.rows, a.ell, block_size, v, stream);
        cuda::add_coo(a.rest, block_size, v, stream);
      },
      no_rest);
}

}  // namespace shardmat
