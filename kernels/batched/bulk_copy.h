// Bulk copies into shared memory by the hardware's copy engine (capability 9.0), and the barrier that counts their bytes.
#pragma once

#include <cstdint>

namespace shardmat::batched {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define SHARDMAT_BULK_COPIES 1
#endif

__device__ inline unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

/// Prepares the barrier for `bytes` bytes. Called by one thread, before it starts copies.
__device__ inline void expect_bytes(std::uint64_t* barrier, unsigned bytes) {
#ifdef SHARDMAT_BULK_COPIES
  asm volatile(
      "mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(shared_address(barrier))
      : "memory");
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
#endif
}

/// REQUIRES: both addresses and the number of bytes are multiples of 16.
__device__ inline void copy_bulk(void* shared, const void* global, unsigned bytes, std::uint64_t* barrier) {
#ifdef SHARDMAT_BULK_COPIES
  if (bytes > 0)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(shared)),
                 "l"(global), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
#endif
}

/// Waits until all expected bytes have arrived. Called by all threads, after a __syncthreads() that follows expect_bytes().
/// Each barrier is used once.
__device__ inline void wait_for_bytes(std::uint64_t* barrier) {
#ifdef SHARDMAT_BULK_COPIES
  asm volatile(
      "{.reg .pred done;\n\t"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n\t"
      "@!done bra again;}" ::"r"(shared_address(barrier))
      : "memory");
#endif
}

}  // namespace shardmat::batched
