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

/// Finds the roots of a graph whose neighbours have near numbers, as grids and sorted meshes: the state of each node becomes
/// kRoot or kNoRoot. A warp takes consecutive nodes one after another, in shared memory, as soon as all those before them
/// are done that two edges lead to. False: the graph is not so, or not symmetric, and no state was written. Waits for the
/// stream.
bool find_roots_by_chunks(const Graph& graph, std::int64_t edges, int* state, Stream& stream);

}  // namespace shardmat::blocks
