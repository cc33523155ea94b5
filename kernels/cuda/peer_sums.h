// Sums inside kernels over GPUs that reach each other's memory, and over all thread blocks of a grid there.
//
// A word says by its upper half that its lower half is there, so nothing needs to be ordered. Nobody writes a slot again
// before all have read it: no one is more than one round ahead of the others, and rounds take turns.
#pragma once

#include "kernels/base/peer_board.h"

namespace shardmat::cuda {

/// Writes a value of this rank to a rank's slots.
__device__ inline void write_to_board(const PeerBoard& board, int to, unsigned round, int index, double value) {
  std::uint64_t* const there =
      board.slots[to] + 2 * ((static_cast<std::int64_t>(round % 2) * board.ranks + board.rank) * board.values + index);
  const std::uint64_t tag = static_cast<std::uint64_t>(round) << 32,
                      low = tag | static_cast<unsigned>(__double2loint(value)),
                      high = tag | static_cast<unsigned>(__double2hiint(value));
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(there), "l"(low), "l"(high) : "memory");
}

/// What a rank wrote to this rank's slots; false if it is not there yet.
__device__ inline bool read_from_board(const PeerBoard& board, int from, unsigned round, int index, double& value) {
  const std::uint64_t* const here =
      board.slots[board.rank] + 2 * ((static_cast<std::int64_t>(round % 2) * board.ranks + from) * board.values + index);
  std::uint64_t low, high;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(low), "=l"(high) : "l"(here) : "memory");
  value = __hiloint2double(static_cast<int>(high), static_cast<int>(low));
  return low >> 32 == round && high >> 32 == round;
}

/// Calls there() until it returns true; false if a rank is lost.
template <class There>
__device__ inline bool wait_for_board(const PeerBoard& board, const There& there) {
  constexpr unsigned kSpinsALook = 1024;  // between looks at host memory
  for (unsigned spins = 1; !there(); ++spins)
    if (spins % kSpinsALook == 0 && board.ended != nullptr && *board.ended != 0) return false;
  return true;
}

/// Sums over a thread block of kThreads threads in a fixed order; the same in all threads.
template <int kThreads, int N>
__device__ inline void sum_over_block(double (&sums)[N]) {
  constexpr int kWarps = kThreads / 32;
  static_assert(kWarps <= 32);
  __shared__ double of_warp[N][kWarps];
#pragma unroll
  for (int s = 0; s < N; ++s)
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) sums[s] += __shfl_down_sync(0xffffffffu, sums[s], offset);
  __syncthreads();  // of_warp may still be read from the call before
  if (threadIdx.x % 32 == 0)
    for (int s = 0; s < N; ++s) of_warp[s][threadIdx.x / 32] = sums[s];
  __syncthreads();
#pragma unroll
  for (int s = 0; s < N; ++s) {
    double sum = threadIdx.x % 32 < kWarps ? of_warp[s][threadIdx.x % 32] : 0;
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    sums[s] = sum;
  }
}

/// Sums over all threads of all blocks of all ranks, in an order that depends on their numbers alone; the same everywhere.
/// All threads of all ranks call it, in blocks of kThreads threads that run at the same time. It orders nothing else: what
/// other threads wrote before it may not be seen after it. Sums are of no use if a rank is lost.
/// REQUIRES: board.values >= N·gridDim.x, and gridDim.x is the same on all ranks.
template <int kThreads, int N>
__device__ inline void sum_over_grid(const PeerBoard& board, unsigned round, double (&sums)[N]) {
  const int blocks = static_cast<int>(gridDim.x), thread = static_cast<int>(threadIdx.x);
  sum_over_block<kThreads>(sums);
#pragma unroll
  for (int s = 0; s < N; ++s)
    for (int r = thread; r < board.ranks; r += kThreads)
      write_to_board(board, r, round, s * blocks + static_cast<int>(blockIdx.x), sums[s]);
#pragma unroll
  for (int s = 0; s < N; ++s) sums[s] = 0;
  for (int i = thread; i < board.ranks * blocks; i += kThreads) {
    double of[N];
    const bool all = wait_for_board(board, [&] {
      bool there = true;
#pragma unroll
      for (int s = 0; s < N; ++s) there &= read_from_board(board, i / blocks, round, s * blocks + i % blocks, of[s]);
      return there;
    });
    if (!all) break;
#pragma unroll
    for (int s = 0; s < N; ++s) sums[s] += of[s];
  }
  sum_over_block<kThreads>(sums);
}

}  // namespace shardmat::cuda
