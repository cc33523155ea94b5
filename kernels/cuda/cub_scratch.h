// Scratch memory of an algorithm of CUB.
#pragma once

#include "kernels/base/cuda_check.h"
#include "kernels/base/device.h"

namespace shardmat::cuda {

/// Calls algorithm(scratch, bytes) for the size of its scratch memory, and with it. Waits for the stream.
template <class Algorithm>
void with_scratch(Stream& stream, const Algorithm& algorithm) {
  const DeviceGuard guard(stream.device());
  std::size_t bytes = 0;
  SHARDMAT_CUDA_CHECK(algorithm(nullptr, bytes));
  const Buffer scratch(stream.device(), bytes + 1);
  SHARDMAT_CUDA_CHECK(algorithm(scratch.data(), bytes));
  stream.synchronize();
}

}  // namespace shardmat::cuda
