// Vector arithmetic of host kernels: one source, compiled for each instruction set.
//
// A kernel is a body with a template parameter Set, marked SHARDMAT_INLINE like all that it calls, and run by
// run_compiled_for(): the compiler copies the body into one function for each set and takes that set's instructions there.
// Kernels that must give the same bits write their sums with add_product().
#pragma once

#include <cstring>
#include <type_traits>

#include "kernels/base/isa.h"

#pragma GCC diagnostic ignored "-Wpsabi"  // no vector crosses a call: everything is inlined
#define SHARDMAT_INLINE [[gnu::always_inline]] inline
#define SHARDMAT_INLINE_LAMBDA __attribute__((always_inline))  // behind the parameters of a lambda

namespace shardmat {

struct Baseline {
  static constexpr int kBytes = 16;      ///< of a vector
  static constexpr int kRegisters = 16;  ///< vectors that fit registers
#if defined(__FP_FAST_FMA)
  static constexpr bool kFused = true;
#else
  static constexpr bool kFused = false;
#endif
};
struct Avx2 {
  static constexpr int kBytes = 32, kRegisters = 16;
  static constexpr bool kFused = true;
};
struct Avx512 {
  static constexpr int kBytes = 64, kRegisters = 32;
  static constexpr bool kFused = true;
};

/// N values side by side; a value for N = 1.
template <class T, int N>
struct LanesOf {
  using type [[gnu::vector_size(N * sizeof(T))]] = T;
};
template <class T>
struct LanesOf<T, 1> {
  using type = T;
};
template <class T, int N>
using Lanes = typename LanesOf<T, N>::type;

/// N values that lie one after another.
template <int N, class T>
SHARDMAT_INLINE Lanes<T, N> load(const T* from) {
  if constexpr (N == 1) {  // GCC would move a copied value through an integer register
    return *from;
  } else {
    Lanes<T, N> lanes;
    std::memcpy(&lanes, from, sizeof lanes);
    return lanes;
  }
}

template <class T, class Pack>
SHARDMAT_INLINE void store(T* to, const Pack& lanes) {
  if constexpr (std::is_same_v<T, Pack>) *to = lanes;
  else std::memcpy(to, &lanes, sizeof lanes);
}

/// sum += a·b, fused on each set that can. For vectors the compiler fuses by itself. For single values it would not where it
/// multiplies several of them at once, so they say it.
template <class Set, class Pack, class A, class B>
SHARDMAT_INLINE void add_product(Pack& sum, const A& a, const B& b) {
  if constexpr (!Set::kFused || !std::is_floating_point_v<Pack>) sum += a * b;
  else if constexpr (std::is_same_v<Pack, double>) sum = __builtin_fma(a, b, sum);
  else sum = __builtin_fmaf(a, b, sum);
}

/// Keeps the compiler from fusing a product with a sum that it is added to.
template <class Pack>
SHARDMAT_INLINE void round_product(Pack& product) {
#if defined(__x86_64__)
  asm("" : "+x"(product));
#elif defined(__aarch64__)
  asm("" : "+w"(product));
#else
  asm("" : "+m"(product));
#endif
}

/// y = product + beta·y, or product if beta is 0, fused on each set that can.
template <class Set, class T>
SHARDMAT_INLINE void put(T& y, T product, T beta) {
  if (beta != T(0)) add_product<Set>(product, beta, y);
  y = product;
}

#if defined(__x86_64__)
#define SHARDMAT_AVX2 [[gnu::target("avx2,fma,f16c")]]
#define SHARDMAT_AVX512 [[gnu::target("avx2,fma,f16c,avx512f,avx512vl,avx512dq,avx512bw")]]
template <class Body>
SHARDMAT_AVX2 void run_avx2(const Body& body) {
  body(Avx2{});
}
template <class Body>
SHARDMAT_AVX512 void run_avx512(const Body& body) {
  body(Avx512{});
}
#endif

/// Calls body(Set{}) as compiled for the instruction set. REQUIRES: isa <= best_isa(); `body` is marked SHARDMAT_INLINE.
template <class Body>
void run_compiled_for(Isa isa, const Body& body) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return run_avx512(body);
  if (isa == Isa::avx2) return run_avx2(body);
#endif
  static_cast<void>(isa);
  body(Baseline{});
}

}  // namespace shardmat
