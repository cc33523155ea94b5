#include "kernels/blocks/chunked_roots.h"

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/blocks/scans.h"
#include "kernels/blocks/small_blocks.h"

namespace shardmat::blocks {
namespace {

constexpr unsigned kAll = 0xffffffffu;
constexpr int kChunk = 16;      ///< nodes
constexpr int kMostNear = 64;   ///< chunks that one edge leads to
constexpr int kMostAfter = 64;  ///< chunks behind it that two edges lead to
constexpr int kLookedAt = 16;   ///< one chunk of so many
constexpr int kWarps = 4, kThreadsOfChunks = kWarps * kLanes;

/// A set of numbers from 0 on in shared memory. It must not become full.
template <int kSlots>
class Set {
 public:
  __device__ explicit Set(int* slots) : slots_(slots) {}
  __device__ void clear(int lane) {
    for (int s = lane; s < kSlots; s += kLanes) slots_[s] = -1;
    __syncwarp();
  }
  /// Its slot. `is_new`: becomes true if it was not there.
  __device__ int insert(int number, bool& is_new) {
    for (int s = static_cast<int>(static_cast<unsigned>(number) * 2654435769u >> 20) % kSlots;; s = (s + 1) % kSlots) {
      const int before = atomicCAS(slots_ + s, -1, number);
      is_new = before == -1;
      if (is_new || before == number) return s;
    }
  }
  __device__ int at(int slot) const { return slots_[slot]; }

 private:
  int* slots_;
};

struct Facts {
  unsigned long long there, back;  ///< sums over all edges, and over the same edges turned round: equal if each has both
  int too_many;
  unsigned close;              ///< of some chunks, how many wait for one that is three to five before
  unsigned head, tail;         ///< of the queue
  alignas(128) unsigned done;  ///< chunks; in a line of its own, as all that wait look at it
};

struct Chunks {
  std::int64_t count;
  int most_reached;                           ///< nodes that one edge leads to, or none
  std::int32_t* reached;                      ///< `most_reached` a chunk, -1: no more
  std::uint16_t* by;                          ///< a bit for each node of the chunk that reaches it
  std::uint16_t* conflicts;                   ///< of each node: those before it in the chunk that two edges lead to
  std::int32_t *near, *near_count;            ///< kMostNear a chunk
  std::int32_t *after, *after_count, *waits;  ///< kMostAfter a chunk; waits: chunks before it that are not done
  std::int32_t* queue;                        ///< chunks that wait for none, -1: not yet
  Facts* facts;
};

__device__ unsigned long long mixed(std::int64_t from, std::int64_t to) {  // splitmix64
  unsigned long long z =
      (static_cast<unsigned long long>(from) << 32 | static_cast<unsigned long long>(to)) + 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

/// The bits that some lane of the warp has.
__device__ unsigned together(unsigned mine) {
#if __CUDA_ARCH__ >= 800
  return __reduce_or_sync(kAll, mine);
#else
  for (int other = kLanes / 2; other > 0; other /= 2) mine |= __shfl_xor_sync(kAll, mine, other);
  return mine;
#endif
}

__device__ std::int64_t chunk_of_warp() {
  return (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kLanes;
}

/// What a chunk reaches, its conflicts, and the chunks that one edge leads to; a warp a chunk.
__global__ void __launch_bounds__(kThreadsOfChunks) look_at_chunks(Graph g, Chunks all) {
  constexpr int kSlots = 512, kMostNodes = 256, kSlotsOfNear = 2 * kMostNear, kAhead = 4;
  __shared__ int nodes[kWarps][kSlots], masks[kWarps][kSlots], chunks[kWarps][kSlotsOfNear];
  __shared__ int sizes[kWarps][2], starts[kWarps][kChunk + 1];
  __shared__ unsigned long long sums[kWarps][2];
  const int lane = static_cast<int>(threadIdx.x) % kLanes, warp = static_cast<int>(threadIdx.x) / kLanes;
  const std::int64_t c = chunk_of_warp();
  Set<kSlots> reached(nodes[warp]);
  Set<kSlotsOfNear> near(chunks[warp]);
  int *const by = masks[warp], *const start = starts[warp];
  volatile int* const size = sizes[warp];
  const std::int64_t first = c * kChunk;
  const int count = first < g.count ? static_cast<int>(min(std::int64_t{kChunk}, g.count - first)) : 0;
  const std::int64_t base = count > 0 ? g.start[first] : 0;
  if (count > 0 && lane <= count) start[lane] = static_cast<int>(g.start[first + lane] - base);
  for (int s = lane; s < kSlots; s += kLanes) by[s] = 0;
  if (lane < 2) size[lane] = 0;
  reached.clear(lane), near.clear(lane);
  unsigned long long there = 0, back = 0;
  const auto take = [&](std::int64_t u, int k) {
    if (size[0] >= kMostNodes) return;
    bool is_new = false;
    atomicOr(by + reached.insert(static_cast<int>(u), is_new), 1 << k);
    if (!is_new) return;
    atomicAdd(sizes[warp], 1);
    if (u / kChunk == c || size[1] >= kMostNear) return;
    near.insert(static_cast<int>(u / kChunk), is_new);
    if (is_new) atomicAdd(sizes[warp] + 1, 1);
  };
  if (lane < count) take(first + lane, lane);
  const int entries = count > 0 ? start[count] : 0;
  for (int from = lane, k = 0; from < entries; from += kAhead * kLanes) {
    std::int32_t u[kAhead];
#pragma unroll
    for (int a = 0; a < kAhead; ++a) u[a] = from + a * kLanes < entries ? g.node[base + from + a * kLanes] : -1;
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      if (u[a] < 0) continue;
      while (from + a * kLanes >= start[k + 1]) ++k;
      there += mixed(first + k, u[a]), back += mixed(u[a], first + k);
      take(u[a], k);
    }
  }
  __syncwarp();
  for (int other = kLanes / 2; other > 0; other /= 2)
    there += __shfl_xor_sync(kAll, there, other), back += __shfl_xor_sync(kAll, back, other);
  if (lane == 0) sums[warp][0] = there, sums[warp][1] = back;
  __syncthreads();
  if (threadIdx.x < 2) {
    unsigned long long sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += sums[w][threadIdx.x];
    atomicAdd(threadIdx.x == 0 ? &all.facts->there : &all.facts->back, sum);
  }
  if (c >= all.count) return;
  if (size[0] > all.most_reached || size[1] >= kMostNear) {  // a list that is full may lack some
    if (lane == 0) all.facts->too_many = 1, all.near_count[c] = 0;
    return;
  }
  // Those that are there move to the front, in place: no slot moves back.
  int written = 0;
  for (int s = lane; s < kSlots; s += kLanes) {
    const int v = reached.at(s), mask = by[s];
    const unsigned has = __ballot_sync(kAll, v >= 0);
    const int to = written + __popc(has & ((1u << lane) - 1));
    __syncwarp();
    if (v >= 0) nodes[warp][to] = v, by[to] = mask;
    written += __popc(has);
    __syncwarp();
  }
  unsigned of_node = 0;  // conflicts of node `lane`
  for (int p = lane; p < all.most_reached; p += kLanes) {
    const int mask = p < written ? by[p] : 0;
    all.reached[c * all.most_reached + p] = p < written ? reached.at(p) : -1;
    all.by[c * all.most_reached + p] = static_cast<std::uint16_t>(mask);
#pragma unroll
    for (int n = 0; n < kChunk; ++n) {
      const unsigned meet = together((mask >> n & 1) != 0 ? static_cast<unsigned>(mask) : 0u);
      if (lane == n) of_node |= meet;
    }
  }
  if (lane < kChunk) all.conflicts[c * kChunk + lane] = static_cast<std::uint16_t>(of_node & ((1u << lane) - 1));
  written = 0;
  for (int s = lane; s < kSlotsOfNear; s += kLanes) {
    const int d = near.at(s);
    const unsigned has = __ballot_sync(kAll, d >= 0);
    if (d >= 0) all.near[c * kMostNear + written + __popc(has & ((1u << lane) - 1))] = d;
    written += __popc(has);
  }
  if (lane == 0) all.near_count[c] = written;
}

/// The chunks that two edges lead to: counts those before, and lists those behind; a warp a chunk.
__global__ void __launch_bounds__(kThreadsOfChunks) find_after(Chunks all) {
  constexpr int kSlots = 512, kMost = 384, kAhead = 4;
  __shared__ int slots[kWarps][kSlots];
  __shared__ int sizes[kWarps];
  const int lane = static_cast<int>(threadIdx.x) % kLanes, warp = static_cast<int>(threadIdx.x) / kLanes;
  const std::int64_t c = chunk_of_warp();
  if (c >= all.count) return;
  Set<kSlots> set(slots[warp]);
  volatile int* const size = sizes + warp;
  if (lane == 0) *size = 0;
  set.clear(lane);
  const auto take = [&](int d) {
    if (d < 0 || d == c || *size >= kMost) return;
    bool is_new = false;
    set.insert(d, is_new);
    if (is_new) atomicAdd(sizes + warp, 1);
  };
  const int near = all.near_count[c];
  for (int a = 0; a < near; a += kAhead) {
    int e[kAhead], d[kAhead][2];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) e[u] = a + u < near ? all.near[c * kMostNear + a + u] : -1;
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int count = e[u] < 0 ? 0 : all.near_count[e[u]];
#pragma unroll
      for (int h = 0; h < 2; ++h)
        d[u][h] = lane + h * kLanes < count ? all.near[std::int64_t{e[u]} * kMostNear + lane + h * kLanes] : -1;
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (lane == 0) take(e[u]);
      take(d[u][0]), take(d[u][1]);
    }
    __syncwarp();
  }
  int before = 0, after = 0;
  bool close = false;
  for (int s = lane; s < kSlots; s += kLanes) {
    const int d = set.at(s);
    close = __any_sync(kAll, close || (d >= 0 && c - d >= 3 && c - d <= 5));
    const unsigned behind = __ballot_sync(kAll, d > c);
    before += __popc(__ballot_sync(kAll, d >= 0 && d < c));
    const int to = after + __popc(behind & ((1u << lane) - 1));
    if (d > c && to < kMostAfter) all.after[c * kMostAfter + to] = d;
    after += __popc(behind);
  }
  if (lane != 0) return;
  if (*size >= kMost || after > kMostAfter) all.facts->too_many = 1;
  if (c % kLookedAt == 0 && close) atomicAdd(&all.facts->close, 1u);
  all.after_count[c] = min(after, kMostAfter), all.waits[c] = before;
}

__global__ void begin_queue(Chunks all) {
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (c < all.count && all.waits[c] == 0) all.queue[atomicAdd(&all.facts->tail, 1u)] = static_cast<std::int32_t>(c);
}

/// Takes chunks from the queue until all are done; one that waits for nothing any more when its last one is done goes on in
/// the same warp. `covered`: nodes that are roots or have one.
__global__ void __launch_bounds__(kThreadsOfChunks)
    find_roots_of_chunks(Graph g, Chunks all, unsigned char* covered, int* state) {
  constexpr int kAhead = 6, kAheadAfter = kMostAfter / kLanes, kLooks = 32;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  int next = -1;
  while (true) {
    if (next < 0) {
      unsigned place = 0;
      if (lane == 0) place = atomicAdd(&all.facts->head, 1u);
      place = __shfl_sync(kAll, place, 0);
      if (place >= all.count) return;
      if (lane == 0) {
        bool all_done = false;
        while (next < 0 && !all_done) {  // those that others keep leave places empty
          for (int look = 0; look < kLooks && next < 0; ++look) next = static_cast<volatile std::int32_t*>(all.queue)[place];
          all_done = next < 0 && *static_cast<volatile unsigned*>(&all.facts->done) == all.count;
        }
      }
      next = __shfl_sync(kAll, next, 0);
      if (next < 0) return;
    }
    const std::int64_t c = next, first = c * kChunk, i = first + lane;
    const bool real = lane < kChunk && i < g.count;
    // What does not change, and is on its way together.
    const int after = __ldg(all.after_count + c);
    int behind[kAheadAfter];
#pragma unroll
    for (int a = 0; a < kAheadAfter; ++a)
      behind[a] = a * kLanes + lane < after ? __ldg(all.after + c * kMostAfter + a * kLanes + lane) : -1;
    const unsigned conflicts = real ? __ldg(all.conflicts + i) : 0;
    const bool alone = real && g.alone[i] != 0;
    __threadfence();  // what others covered before they left c to us
    unsigned blocked = __ballot_sync(kAll, !real || alone);
    int reached[kAhead];
    unsigned by[kAhead];
    const auto load = [&](int from) {
#pragma unroll
      for (int a = 0; a < kAhead; ++a) {
        const int p = from + a * kLanes + lane;
        const bool there = p < all.most_reached;
        reached[a] = there ? __ldg(all.reached + c * all.most_reached + p) : -1;
        by[a] = there ? __ldg(all.by + c * all.most_reached + p) : 0;
      }
    };
    unsigned mine = 0;
    for (int from = 0; from < all.most_reached; from += kAhead * kLanes) {
      load(from);
      unsigned char is[kAhead];
#pragma unroll
      for (int a = 0; a < kAhead; ++a) is[a] = reached[a] >= 0 ? __ldcg(covered + reached[a]) : 0;
#pragma unroll
      for (int a = 0; a < kAhead; ++a) mine |= is[a] != 0 ? by[a] : 0;
    }
    blocked |= together(mine);
    unsigned roots = 0;
#pragma unroll
    for (int k = 0; k < kChunk; ++k) {
      const unsigned of_k = __shfl_sync(kAll, conflicts, k);
      if ((blocked >> k & 1) == 0 && (of_k & roots) == 0) roots |= 1u << k;
    }
    if (roots != 0)
      for (int from = 0; from < all.most_reached; from += kAhead * kLanes) {
        if (all.most_reached > kAhead * kLanes) load(from);
#pragma unroll
        for (int a = 0; a < kAhead; ++a)
          if (reached[a] >= 0 && (by[a] & roots) != 0) covered[reached[a]] = 1;
      }
    if (real) state[i] = (roots >> lane & 1) != 0 ? kRoot : kNoRoot;
    __threadfence();
    __syncwarp();
    next = -1;
#pragma unroll
    for (int a = 0; a < kAheadAfter; ++a) {
      bool ready = behind[a] >= 0 && atomicSub(all.waits + behind[a], 1) == 1;
      const unsigned all_ready = __ballot_sync(kAll, ready);
      if (all_ready == 0) continue;
      __threadfence();  // what all that it waited for have covered
      if (next < 0) {
        const int taken = __ffs(static_cast<int>(all_ready)) - 1;
        next = __shfl_sync(kAll, behind[a], taken);
        ready = ready && lane != taken;
      }
      if (ready) static_cast<volatile std::int32_t*>(all.queue)[atomicAdd(&all.facts->tail, 1u)] = behind[a];
    }
    if (lane == 0) atomicAdd(&all.facts->done, 1u);
    __syncwarp();
  }
}

}  // namespace

bool find_roots_by_chunks(const Graph& g, std::int64_t edges, int* state, Stream& stream) try {
  constexpr int kFewReached = 96, kManyReached = 192;  // multiples of a warp
  // More warps would poll what others wait for.
  constexpr std::int64_t kBlocksOfSm = 2, kChunksOfWarp = 32;
  const std::int64_t chunks = (g.count + kChunk - 1) / kChunk;
  Chunks all{};
  all.count = chunks, all.most_reached = edges <= 8 * g.count ? kFewReached : kManyReached;
  const Buffer facts = array<Facts>(1, stream), near = array<std::int32_t>(chunks * kMostNear, stream),
               near_count = array<std::int32_t>(chunks, stream),
               reached = array<std::int32_t>(chunks * all.most_reached, stream),
               by = array<std::uint16_t>(chunks * all.most_reached, stream),
               conflicts = array<std::uint16_t>(chunks * kChunk, stream);
  all.facts = facts.as<Facts>(), all.near = near.as<std::int32_t>(), all.near_count = near_count.as<std::int32_t>();
  all.reached = reached.as<std::int32_t>(), all.by = by.as<std::uint16_t>(), all.conflicts = conflicts.as<std::uint16_t>();
  fill_bytes(facts.data(), 0, facts.bytes(), stream);
  cuda::launch(look_at_chunks, chunks * kLanes, kThreadsOfChunks, stream, g, all);
  Facts found{};
  copy_to_host(&found, facts.data(), sizeof found, stream);
  if (found.too_many != 0 || found.there != found.back) return false;
  const Buffer after = array<std::int32_t>(chunks * kMostAfter, stream), after_count = array<std::int32_t>(chunks, stream),
               waits = array<std::int32_t>(chunks, stream), queue = array<std::int32_t>(chunks, stream),
               covered = array<unsigned char>(g.count, stream);
  all.after = after.as<std::int32_t>(), all.after_count = after_count.as<std::int32_t>();
  all.waits = waits.as<std::int32_t>(), all.queue = queue.as<std::int32_t>();
  fill_bytes(queue.data(), 0xff, queue.bytes(), stream);
  fill_bytes(covered.data(), 0, covered.bytes(), stream);
  cuda::launch(find_after, chunks * kLanes, kThreadsOfChunks, stream, all);
  copy_to_host(&found, facts.data(), sizeof found, stream);
  // The next line of a grid begins when a chunk or two of this one are done. Of short lines no two run at the same time.
  if (found.too_many != 0 || 2 * kLookedAt * std::int64_t{found.close} > chunks) return false;
  cuda::launch(begin_queue, chunks, kThreads, stream, all);
  const std::int64_t blocks =
      std::clamp<std::int64_t>(chunks / (kWarps * kChunksOfWarp), 1, kBlocksOfSm * cuda::multiprocessors(stream.device()));
  cuda::launch_blocks(find_roots_of_chunks, blocks, kThreadsOfChunks, 0, stream, g, all, covered.as<unsigned char>(), state);
  stream.synchronize();
  return true;
} catch (const Error& error) {
  if (error.kind() != ErrorKind::resources) throw;
  return false;  // nodes that wait for themselves need no lists
}

}  // namespace shardmat::blocks
