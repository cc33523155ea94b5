// Roots of aggregates on a GPU (setup.h). Internal to make_aggregates().
#pragma once

#include <cstdint>

#include "kernels/base/device.h"

namespace shardmat::blocks {

enum State : int { kOpen, kRoot, kNoRoot };

/// StrongGraph in device memory.
struct Graph {
  std::int64_t count;
  const std::int64_t* start;
  const std::int32_t* node;
  const char* alone;
};

/// Finds the roots of a graph like a grid with long lines: the state of each node becomes kRoot or kNoRoot. A warp takes
/// consecutive nodes as soon as all those before them are done that two edges lead to. False, and no state was written: the
/// graph is not so, is not symmetric, or there is no memory for the lists of what nodes reach. `edges`: of all nodes. Waits
/// for the stream. On an H200 the roots of 192³ nodes of 27 points took 14 ms, and 43 where each node waits for itself.
bool find_roots_by_chunks(const Graph& graph, std::int64_t edges, int* state, Stream& stream);

}  // namespace shardmat::blocks
