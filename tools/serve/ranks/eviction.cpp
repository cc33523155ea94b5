#include "tools/serve/ranks/eviction.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace shardmat::serve {

std::int64_t bytes_on(const std::vector<Matrix*>& matrices, std::size_t rank) {
  std::int64_t bytes = 0;
  for (const Matrix* matrix : matrices) bytes += matrix->ranks[rank].bytes;
  return bytes;
}

std::vector<Matrix*> to_evict(std::vector<Matrix*> matrices, const std::vector<std::int64_t>& missing) {
  std::sort(matrices.begin(), matrices.end(), [](const Matrix* a, const Matrix* b) { return a->last_used < b->last_used; });
  const auto frees_enough = [&](const std::vector<Matrix*>& some) {
    for (std::size_t rank = 0; rank < missing.size(); ++rank)
      if (bytes_on(some, rank) < missing[rank]) return false;
    return true;
  };
  std::vector<Matrix*> evicted;
  for (Matrix* matrix : matrices) {
    if (frees_enough(evicted)) break;
    evicted.push_back(matrix);
  }
  if (!frees_enough(evicted)) return {};
  for (std::size_t i = evicted.size(); i-- > 0;) {  // those that are not needed stay, the most recently used ones first
    std::vector<Matrix*> others = evicted;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    if (frees_enough(others)) evicted = std::move(others);
  }
  return evicted;
}

}  // namespace shardmat::serve
