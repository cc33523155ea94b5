// A size that is known at run time becomes one that is known when compiling.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <type_traits>

namespace shardmat {

/// Calls f(std::integral_constant<int, size>) for a size of 1 … kMost, which the caller has checked.
template <int kMost, int kSize = 1, class F>
void with_known_size(std::int64_t size, const F& f) {
  if constexpr (kSize < kMost)
    if (size != kSize) return with_known_size<kMost, kSize + 1>(size, f);
  f(std::integral_constant<int, kSize>());
}

}  // namespace shardmat
