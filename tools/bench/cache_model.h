// A model of the L1 cache of one multiprocessor under the reads of a product, to relate a matrix's spatial locality to.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/base/l1_cache.h"
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

/// Lines of 128 bytes, 4 ways, nothing taken for shared memory.
struct L1Model : L1Cache {
  std::string of = "an H100";
};
/// The L1 of a GPU; that of an H100 for the host.
L1Model l1_model(Device device);

/// Shares of hits, from 0 to 1; 0 without reads.
struct HitRates {
  double all = 0;  ///< of all reads
  double x = 0;    ///< of the reads of x
};

/// The reads of a kernel with one thread a row (CRS), and of Fold: one thread a piece, then one thread a row that adds the
/// pieces' sums. Threads run in blocks of 256 that are dealt to the multiprocessors in turn (to fewer, if there are not 64
/// blocks for each); one multiprocessor is simulated, over about 2^22 nonzeros at most. Its resident warps take turns, load
/// by load. A load of a warp counts once for each line that its threads read, as the hardware's counters do.
HitRates crs_hit_rates(const CsrView& matrix, ValueType type, const L1Model& model);
HitRates fold_hit_rates(const CsrView& matrix, ValueType type, std::int64_t width, const L1Model& model);

}  // namespace shardmat::tools
