// Aggregates of a level, found by all nodes at once.
#include <cstdint>

#include "kernels/blocks/chunked_roots.h"
#include "kernels/blocks/setup.h"
#include "kernels/blocks/small_blocks.h"

namespace shardmat::blocks {
namespace {

constexpr std::int32_t kNone = 0x7f7f7f7f;  ///< above all numbers of aggregates; bytes that are alike

constexpr std::int64_t kManyNodes = 1 << 14;  ///< fewer are done before chunks of them are known
constexpr int kBlocksOfSm = 4;                ///< of kThreads; more would poll what others wait for

/// A node is a root if no node before it is one that takes it or a node that it would take. kTeam lanes have a node. Teams
/// take nodes in order, so that those before a node run or have run, and waiting for them ends.
template <int kTeam>
__global__ void __launch_bounds__(kThreads) find_roots(Graph g, int* state, unsigned long long* next) {
  constexpr int kAhead = 4;
  const int lane = static_cast<int>(threadIdx.x) % kTeam;
  const unsigned mask = team_mask<kTeam>();
  volatile int* const states = state;
  while (true) {
    unsigned long long taken = 0;
    if (lane == 0) taken = atomicAdd(next, 1ull);
    const auto i = static_cast<std::int64_t>(__shfl_sync(mask, taken, 0, kTeam));
    if (i >= g.count) return;
    bool is_root = g.alone[i] == 0;
    const std::int64_t begin = g.start[i], end = g.start[i + 1];
    // Each lane walks the nodes around one neighbour, and waits where one before i is open.
    for (std::int64_t first = begin - 1; first < end && is_root; first += kTeam) {
      const std::int64_t k = first + lane, u = k < begin ? i : k < end ? __ldg(g.node + k) : -1;
      const std::int64_t last = u < 0 ? 0 : __ldg(g.start + u + 1);
      std::int64_t l = u < 0 ? 0 : __ldg(g.start + u);
      bool done = u < 0, self = u >= 0 && u < i;  // u itself is not among its neighbours
      while (true) {
        bool root = false;
        if (!done) {
          const int of_self = self ? states[u] : kNoRoot;
          self = of_self == kOpen;
          root = of_self == kRoot;
          int other[kAhead];
          bool before = true;
#pragma unroll
          for (int a = 0; a < kAhead; ++a) {
            const std::int64_t j = l + a < last ? __ldg(g.node + l + a) : i;
            before = before && j < i;  // neighbours ascend
            other[a] = before ? states[j] : kNoRoot;
          }
          bool passes = true;
#pragma unroll
          for (int a = 0; a < kAhead; ++a) {
            root = root || other[a] == kRoot;
            passes = passes && other[a] == kNoRoot;
            l += passes ? 1 : 0;
          }
          done = passes && !before && !self;
        }
        if (__any_sync(mask, root)) {
          is_root = false;
          break;
        }
        if (__all_sync(mask, done)) break;
      }
    }
    const int mine = is_root ? kRoot : kNoRoot;
    if (lane == 0) states[i] = mine;
  }
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
  const Buffer state = array<int>(n, stream), next = array<unsigned long long>(1, stream),
               number = array<std::int64_t>(n + 1, stream), of_root = array<std::int32_t>(n, stream),
               counts = array<Members>(1, stream);
  fill_bytes(state.data(), 0, state.bytes(), stream);
  fill_bytes(next.data(), 0, next.bytes(), stream);
  fill_bytes(counts.data(), 0, counts.bytes(), stream);
  const std::int64_t blocks = std::int64_t{kBlocksOfSm} * cuda::multiprocessors(stream.device());
  const auto look = [&](auto kernel) {
    cuda::launch_blocks(kernel, blocks, kThreads, 0, stream, g, state.as<int>(), next.as<unsigned long long>());
  };
  if (n < kManyNodes || !find_roots_by_chunks(g, graph.edges, state.as<int>(), stream)) {
    if (graph.edges < 12 * n) look(find_roots<8>);
    else look(find_roots<kLanes>);
  }
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
