// The CUDA functions for transpose.cpp. In a build without CUDA they are never called, because no batch lies on a GPU.
#pragma once

#include "kernels/batched/transpose.h"

namespace shardmat::cuda {

#ifdef SHARDMAT_HAVE_CUDA
std::size_t transpose_work_bytes(const DeviceBatch& batch);
void transpose_into(const DeviceBatch& batch, const std::int32_t* offsets, const TransposedArrays& to, void* work,
                    Stream& stream);
#else
inline std::size_t transpose_work_bytes(const DeviceBatch&) { return 0; }
inline void transpose_into(const DeviceBatch&, const std::int32_t*, const TransposedArrays&, void*, Stream&) {}
#endif

}  // namespace shardmat::cuda
