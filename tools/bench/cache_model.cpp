#include "tools/bench/cache_model.h"

#include <algorithm>

namespace shardmat::tools {
namespace {

constexpr std::int64_t kCacheBytes = 192 << 10, kLineBytes = 128;
constexpr int kWays = 4;
constexpr std::int64_t kBlockRows = 256, kMultiprocessors = 132, kLeastBlocks = 64;
constexpr std::int64_t kMostReads = std::int64_t{1} << 22;

}  // namespace

LruCache::LruCache(std::int64_t bytes, std::int64_t line_bytes, int ways)
    : sets_(bytes / line_bytes / ways), ways_(ways), lines_(static_cast<std::size_t>(sets_ * ways), -1) {}

bool LruCache::access(std::int64_t line) {
  const auto begin = lines_.begin() + line % sets_ * ways_, end = begin + ways_;
  const auto found = std::find(begin, end, line);
  const bool hit = found != end;
  std::rotate(begin, hit ? found : end - 1, hit ? found + 1 : end);
  *begin = line;
  return hit;
}

double l1_hit_rate(const CsrView& matrix, ValueType type) {
  LruCache cache(kCacheBytes, kLineBytes, kWays);
  const std::int64_t line_entries = kLineBytes / static_cast<std::int64_t>(size_of(type));
  const std::int64_t blocks = (matrix.rows + kBlockRows - 1) / kBlockRows;
  const std::int64_t stride = std::clamp<std::int64_t>(blocks / kLeastBlocks, 1, kMultiprocessors);
  std::int64_t reads = 0, hits = 0;
  for (std::int64_t block = 0; block < blocks && reads < kMostReads; block += stride) {
    const auto first = static_cast<std::size_t>(block * kBlockRows);
    const auto last = static_cast<std::size_t>(std::min(matrix.rows, (block + 1) * kBlockRows));
    const std::int64_t end = matrix.row_ptr[last] - matrix.row_ptr[0];
    for (std::int64_t k = matrix.row_ptr[first] - matrix.row_ptr[0]; k < end; ++k, ++reads)
      hits += cache.access(matrix.col_idx[static_cast<std::size_t>(k)] / line_entries);
  }
  return reads == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(reads);
}

}  // namespace shardmat::tools
