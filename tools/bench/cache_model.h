// A model of one L1 cache that reads x for a product, to compare a matrix's spatial locality with.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/types.h"
#include "kernels/matrix/csr.h"

namespace shardmat::tools {

/// Set-associative, least recently used goes first.
class LruCache {
 public:
  LruCache(std::int64_t bytes, std::int64_t line_bytes, int ways);
  /// True if the line was there; it is then the most recently used one.
  bool access(std::int64_t line);

 private:
  std::int64_t sets_;
  int ways_;
  std::vector<std::int64_t> lines_;  ///< ways a set, most recently used first; -1 is empty
};

/// Share of the reads of x that hit, from 0 to 1; 0 without nonzeros. The model: 192 KB in lines of 128 bytes, 4 ways (what
/// an SM of an A100 or H100 has, all of it for x). Rows are dealt out in blocks of 256 to 132 SMs in turn (to fewer, if a
/// matrix has not 64 blocks for each); one of them is simulated, over about 2^22 nonzeros at most. It reads columns in
/// storage order, one after another.
double l1_hit_rate(const CsrView& matrix, ValueType type);

}  // namespace shardmat::tools
