// The largest entries of each column of a distributed vector.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/matrix/distributed_vector.h"

namespace shardmat {

struct TopEntry {
  std::int64_t index;  ///< original row
  double value;
};

/// For each column at most `count` entries, by descending value; equal values by ascending index. A rank holds its own
/// entries as f64 in host memory, rank 0 also `count` entries of each rank and column. Collective; the same on all ranks.
std::vector<std::vector<TopEntry>> top_entries(const DistributedVector& vector, std::int64_t count, Stream& stream);

}  // namespace shardmat
