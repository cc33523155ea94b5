// Aggregates of a level, found by all nodes at once.
#include <cstdint>

#include "kernels/blocks/setup.h"
#include "kernels/blocks/small_blocks.h"

namespace shardmat::blocks {
namespace {

enum State : int { kOpen, kRoot, kNoRoot };
constexpr std::int32_t kNone = 0x7f7f7f7f;  ///< above all numbers of aggregates; bytes that are alike

struct Graph {
  std::int64_t count;
  const std::int64_t* start;
  const std::int32_t* node;
  const char* alone;
};

/// A node is a root if no node before it is one that takes it or a node that it would take. Blocks number themselves as they
/// start: those before them run or have run, so that waiting for nodes before one's own ends.
__global__ void __launch_bounds__(kThreads) find_roots(Graph g, int* state, unsigned* started) {
  __shared__ unsigned block;
  if (threadIdx.x == 0) block = atomicAdd(started, 1u);
  __syncthreads();
  const std::int64_t i = static_cast<std::int64_t>(block) * kThreads + threadIdx.x;
  if (i >= g.count) return;
  volatile int* const states = state;
  if (g.alone[i] != 0) {
    states[i] = kNoRoot;
    return;
  }
  const std::int64_t begin = g.start[i], end = g.start[i + 1];
  // First what is known already; then wait for what is not.
  bool taken = false;
  for (int pass = 0; pass < 2 && !taken; ++pass)
    for (std::int64_t k = begin - 1; k < end && !taken; ++k) {
      const std::int64_t u = k < begin ? i : g.node[k], u_end = g.start[u + 1];
      for (std::int64_t l = g.start[u] - 1; l < u_end && !taken; ++l) {
        const std::int64_t j = l < g.start[u] ? u : g.node[l];
        if (j >= i) continue;
        int other = states[j];
        while (pass == 1 && other == kOpen) {
#if __CUDA_ARCH__ >= 700
          __nanosleep(40);
#endif
          other = states[j];
        }
        taken = other == kRoot;
      }
    }
  states[i] = taken ? kNoRoot : kRoot;
}

__global__ void mark_roots(std::int64_t count, const int* state, std::int64_t* number) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) number[i] = state[i] == kRoot ? 1 : 0;
}

struct Members {
  unsigned long long single, taken;
};

/// Roots take their neighbours; in `of_root` kNone stands for none.
__global__ void take_neighbours(Graph g, const int* state, const std::int64_t* number, std::int32_t* of_root,
                                Members* counts) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= g.count || state[i] != kRoot) return;
  const auto mine = static_cast<std::int32_t>(number[i]);
  atomicMin(of_root + i, mine);
  for (std::int64_t k = g.start[i]; k < g.start[i + 1]; ++k) atomicMin(of_root + g.node[k], mine);
  if (g.start[i] == g.start[i + 1]) atomicAdd(&counts->single, 1ull);
}

/// The aggregate that most neighbours are in; of equal ones that whose last vote comes first.
__global__ void vote(Graph g, const std::int32_t* of_root, std::int32_t* of_node, Members* counts) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= g.count) return;
  std::int32_t best = -1;
  if (g.alone[i] == 0) {
    if (of_root[i] != kNone) best = of_root[i];
    int most = 0;
    for (std::int64_t k = g.start[i]; of_root[i] == kNone && k < g.start[i + 1]; ++k) {
      const std::int32_t a = of_root[g.node[k]];
      if (a == kNone) continue;
      int votes = 0;
      for (std::int64_t l = g.start[i]; l <= k; ++l) votes += of_root[g.node[l]] == a ? 1 : 0;
      if (votes > most) most = votes, best = a;
    }
  }
  of_node[i] = best;
  if (best >= 0) atomicAdd(&counts->taken, 1ull);
}

__global__ void key_nodes(std::int64_t count, std::int32_t aggregates, const std::int32_t* of_node, std::int32_t* key) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) key[i] = of_node[i] < 0 ? aggregates : of_node[i];
}

__global__ void find_starts(std::int64_t count, std::int64_t aggregates, const std::int32_t* sorted, std::int64_t* start) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i <= aggregates) start[i] = place_of(sorted, count, static_cast<std::int32_t>(i));
}

}  // namespace

Aggregates make_aggregates(const StrongGraph& graph, Stream& stream) {
  const std::int64_t n = graph.count;
  const Graph g{n, graph.start.as<std::int64_t>(), graph.node.as<std::int32_t>(), graph.alone.as<char>()};
  const Buffer state = array<int>(n, stream), started = array<unsigned>(1, stream),
               number = array<std::int64_t>(n + 1, stream), of_root = array<std::int32_t>(n, stream),
               counts = array<Members>(1, stream);
  fill_bytes(state.data(), 0, state.bytes(), stream);
  fill_bytes(started.data(), 0, started.bytes(), stream);
  fill_bytes(counts.data(), 0, counts.bytes(), stream);
  cuda::launch(find_roots, n, kThreads, stream, g, state.as<int>(), started.as<unsigned>());
  cuda::launch(mark_roots, n, kThreads, stream, n, state.as<int>(), number.as<std::int64_t>());
  Aggregates out;
  out.count = sum_before(number.as<std::int64_t>(), n, stream);
  fill_bytes(of_root.data(), 0x7f, of_root.bytes(), stream);
  out.of_node = array<std::int32_t>(n, stream);
  cuda::launch(take_neighbours, n, kThreads, stream, g, state.as<int>(), number.as<std::int64_t>(),
               of_root.as<std::int32_t>(), counts.as<Members>());
  cuda::launch(vote, n, kThreads, stream, g, of_root.as<std::int32_t>(), out.of_node.as<std::int32_t>(),
               counts.as<Members>());
  Members found{};
  copy_to_host(&found, counts.data(), sizeof found, stream);
  out.single = static_cast<std::int64_t>(found.single), out.taken = static_cast<std::int64_t>(found.taken);
  const Buffer key = array<std::int32_t>(n, stream), sorted = array<std::int32_t>(n, stream);
  cuda::launch(key_nodes, n, kThreads, stream, n, static_cast<std::int32_t>(out.count), out.of_node.as<std::int32_t>(),
               key.as<std::int32_t>());
  out.member = array<std::int32_t>(n, stream);
  sort_by_key(key.as<std::int32_t>(), n, out.count, sorted.as<std::int32_t>(), out.member.as<std::int32_t>(), stream);
  out.start = array<std::int64_t>(out.count + 1, stream);
  cuda::launch(find_starts, out.count + 1, kThreads, stream, n, out.count, sorted.as<std::int32_t>(),
               out.start.as<std::int64_t>());
  stream.synchronize();
  return out;
}

}  // namespace shardmat::blocks
