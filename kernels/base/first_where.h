// Looks for what is wrong in long arrays, on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

#include "kernels/base/parallel.h"

namespace shardmat {

/// The first i of [0, count) for which check(i) is true; nothing without one. `check` may be called for any i, from any
/// thread. REQUIRES: `grain` as of parallel_ranges().
template <class Check>
std::optional<std::int64_t> first_where(std::int64_t count, std::int64_t grain, const Check& check) {
  constexpr std::int64_t kChunk = 256;
  std::atomic<std::int64_t> first = count;
  parallel_ranges(count, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t from = begin; from < std::min(end, first.load(std::memory_order_relaxed)); from += kChunk) {
      const std::int64_t to = std::min(end, from + kChunk);
      bool any = false;
      for (std::int64_t i = from; i < to; ++i) any |= check(i);  // without a branch, so that plain checks are vectorised
      if (!any) continue;
      std::int64_t found = from;
      while (!check(found)) ++found;
      for (std::int64_t known = first; found < known && !first.compare_exchange_weak(known, found);) continue;
      return;
    }
  });
  return first == count ? std::nullopt : std::optional<std::int64_t>(first);
}

}  // namespace shardmat
