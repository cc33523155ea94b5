// Ranges of rows for host threads whose products also sum own·y (Plan::multiply_with_dot()). A range consists of whole
// chunks of rows, and each chunk leaves one part, added while its y is in the cache. So sums depend on the rows alone, not
// on the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/host/ranges.h"
#include "kernels/typed_plan.h"

namespace shardmat {

/// Rows of a chunk: a multiple of every size of blocks (2 to 6).
constexpr std::int64_t kRowsOfAChunk = 240;

struct DotRanges {
  std::vector<std::int64_t> starts;  ///< of the ranges, in rows, block rows or slices, then their number
  std::int64_t chunk = 0;            ///< rows, block rows or slices of a chunk; 0: no dot products
  std::int64_t parts() const { return chunk == 0 ? 0 : (starts.back() + chunk - 1) / chunk; }
};

/// Moves `starts` back to whole chunks. Leaves them alone if there are too few chunks to be shared evenly, or if one has a
/// large share of the work: then a product has no dot products. work(i): as in even_starts().
template <class Work>
DotRanges dot_ranges(std::vector<std::int64_t> starts, std::int64_t chunk, const Work& work) {
  constexpr std::int64_t kLeastChunks = 64;
  const std::int64_t units = starts.back(), most = work(units) / kLeastChunks;
  if (units < kLeastChunks * chunk) return {std::move(starts)};
  for (std::int64_t begin = 0; begin < units; begin += chunk)
    if (work(std::min(units, begin + chunk)) - work(begin) > most) return {std::move(starts)};
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) starts[i] -= starts[i] % chunk;
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  return {std::move(starts), chunk};
}

/// Calls body(Set{}, begin, end) for ranges that cover all. With a dot product: chunk by chunk, each followed by
/// sum(own, begin, end), the sum of own·y over its rows.
template <class Dot, class Body, class Sum>
void for_each_range(const DotRanges& ranges, Isa isa, [[maybe_unused]] const Dot& dot, const Body& body,
                    [[maybe_unused]] const Sum& sum) {
  for_each_range(ranges.starts, isa, [&]<class Set>(Set set, std::int64_t begin, std::int64_t end) SHARDMAT_INLINE_LAMBDA {
    if constexpr (std::is_same_v<Dot, NoDot>) {
      body(set, begin, end);
    } else {
      for (std::int64_t at = begin, next = 0; at < end; at = next) {
        next = std::min(end, at + ranges.chunk);
        body(set, at, next);
        dot.parts[at / ranges.chunk] = sum(dot.own, at, next);
      }
    }
  });
}

/// The sum of own[i]·y[i] over begin ≤ i < end.
template <class T>
SHARDMAT_INLINE double dot_of_rows(const T* own, const T* y, std::int64_t begin, std::int64_t end) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = begin; i < end; ++i) sum += static_cast<double>(own[i]) * static_cast<double>(y[i]);
  return sum;
}

}  // namespace shardmat
