// Which thread block of a grid is done last, so that it can add up what all have left.
#pragma once

namespace shardmat::cuda {

#ifdef __CUDACC__
/// True in all threads of the block that comes here last of its column of the grid. It then sees what the others wrote
/// before. *done is 0 before and after.
__device__ inline bool comes_last(unsigned* done) {
  __syncthreads();
  bool last = false;
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
  }
  if (!__syncthreads_or(last)) return false;
  __threadfence();
  return true;
}
#endif

}  // namespace shardmat::cuda
