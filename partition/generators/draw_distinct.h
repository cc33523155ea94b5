// Draws distinct random numbers, e.g. the columns of a row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "partition/generators/counter_random.h"

namespace shardmat {

/// Writes `count` distinct numbers below `below` in ascending order; every set is equally likely. Draws until there are
/// enough distinct numbers. If `count` is more than half of `below`, draws the numbers to leave out instead. `drawn` is
/// scratch memory.
template <class Index>
void draw_distinct(const CounterRandom& random, std::int64_t count, std::int64_t below, Index* out,
                   std::vector<std::int64_t>& drawn) {
  const bool complement = count > below / 2;
  const std::int64_t wanted = complement ? below - count : count;
  drawn.clear();
  for (std::int64_t draw = 0; std::ssize(drawn) < wanted;) {
    const std::int64_t missing = wanted - std::ssize(drawn);
    for (std::int64_t k = 0; k < missing; ++k) drawn.push_back(random.below(below, draw++));
    std::sort(drawn.begin(), drawn.end());
    drawn.erase(std::unique(drawn.begin(), drawn.end()), drawn.end());
  }
  if (!complement) {
    std::transform(drawn.begin(), drawn.end(), out, [](std::int64_t number) { return static_cast<Index>(number); });
    return;
  }
  auto skipped = drawn.begin();
  for (std::int64_t number = 0; number < below; ++number)
    if (skipped != drawn.end() && *skipped == number) ++skipped;
    else *out++ = static_cast<Index>(number);
}

}  // namespace shardmat
