// Loads with a hint how long the caches should keep the data. A product reads the matrix once but gathers from x many times,
// so matrix lines should leave the caches first and make room for x.
#pragma once

#include <cstdint>

namespace shardmat::cuda {

enum CacheHint : int {
  kNoHint = 0,
  kStreaming = 1,  ///< the matrix: evict first (ld.cs)
  kKeepX = 2,      ///< the matrix: not in L1, first to leave L2; x: last to leave L2 (below capability 8.0: as kStreaming)
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
__device__ inline std::uint64_t evict_first() {
  std::uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ inline std::uint64_t evict_last() {
  std::uint64_t policy;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
#define SHARDMAT_HINTED_LOAD(function, type, ptx_type, constraint, allocation) \
  __device__ inline type function(const type* p, std::uint64_t policy) {       \
    type value;                                                                \
    asm("ld.global.nc" allocation ".L2::cache_hint." ptx_type " %0, [%1], %2;" \
        : "=" constraint(value)                                                \
        : "l"(p), "l"(policy));                                                \
    return value;                                                              \
  }
SHARDMAT_HINTED_LOAD(load_past_l1, std::int32_t, "s32", "r", ".L1::no_allocate")
SHARDMAT_HINTED_LOAD(load_past_l1, float, "f32", "f", ".L1::no_allocate")
SHARDMAT_HINTED_LOAD(load_past_l1, double, "f64", "d", ".L1::no_allocate")
SHARDMAT_HINTED_LOAD(load_with_policy, float, "f32", "f", "")
SHARDMAT_HINTED_LOAD(load_with_policy, double, "f64", "d", "")
#undef SHARDMAT_HINTED_LOAD
#else
__device__ inline std::uint64_t evict_first() { return 0; }
__device__ inline std::uint64_t evict_last() { return 0; }
template <class T>
__device__ T load_past_l1(const T* p, std::uint64_t) {
  return __ldcs(p);
}
template <class T>
__device__ T load_with_policy(const T* p, std::uint64_t) {
  return __ldg(p);
}
#endif

/// Loads of matrix entries and of x. REQUIRES: the data does not change while the kernel runs.
template <int kHint>
class Loads {
 public:
  template <class T>
  __device__ T matrix(const T* p) const {
    if constexpr (kHint == kKeepX) return load_past_l1(p, first_);
    if constexpr (kHint == kStreaming) return __ldcs(p);
    return __ldg(p);
  }
  template <class T>
  __device__ T x(const T* p) const {
    if constexpr (kHint == kKeepX) return load_with_policy(p, last_);
    return __ldg(p);
  }

 private:
  std::uint64_t first_ = kHint == kKeepX ? evict_first() : 0, last_ = kHint == kKeepX ? evict_last() : 0;
};

}  // namespace shardmat::cuda
