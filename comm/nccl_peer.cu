// Reading the memory of other GPUs inside kernels, through the symmetric windows of NCCL 2.28 and newer. The barrier between
// ranks is our own, on memory of such a window: NCCL's waits for ever if a rank is gone, this one ends when the communicator
// breaks.
#include <nccl_device.h>

#include <algorithm>
#include <string>

#include "comm/nccl_impl.h"
#include "kernels/base/cuda_check.h"
#include "kernels/cuda/launch.h"

namespace shardmat {
namespace {

constexpr int kThreads = 512, kMostBlocks = 32, kAtOnce = 4;
constexpr unsigned kSpinsALook = 1024;  // between looks at host memory

struct Ranks {
  int rank, count;
  ncclWindow_t arrived;       ///< [block][rank]
  unsigned* meetings;         ///< [block]
  const volatile int* ended;  ///< 1: nobody is coming
};

__device__ unsigned* arrived_at(const Ranks& ranks, int at, int who) {
  return static_cast<unsigned*>(ncclGetLsaPointer(ranks.arrived, 0, at)) + blockIdx.x * ranks.count + who;
}

/// Block b of this rank waits for block b of every other; what they wrote before is seen after. False: a rank is lost.
__device__ bool meet(const Ranks& ranks, unsigned meeting) {
  __syncthreads();
  bool lost = false;
  for (int r = static_cast<int>(threadIdx.x); r < ranks.count; r += kThreads)
    if (r != ranks.rank)
      asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(arrived_at(ranks, r, ranks.rank)), "r"(meeting) : "memory");
  for (int r = static_cast<int>(threadIdx.x); r < ranks.count; r += kThreads) {
    if (r == ranks.rank) continue;
    const unsigned* mine = arrived_at(ranks, ranks.rank, r);
    for (unsigned spins = 1;; ++spins) {
      unsigned there;
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(there) : "l"(mine) : "memory");
      if (static_cast<int>(there - meeting) >= 0) break;
      if (spins % kSpinsALook == 0 && *ranks.ended != 0) {
        lost = true;
        break;
      }
    }
  }
  return __syncthreads_or(lost) == 0;
}

/// Entries of `words` words; the blocks share out the words.
template <class Word>
__global__ void __launch_bounds__(kThreads)
    pull_entries(Ranks ranks, ncclWindow_t from, int words, std::int64_t count, const std::int32_t* __restrict__ places,
                 const std::uint8_t* __restrict__ owners, Word* to) {
  unsigned meeting = ranks.meetings[blockIdx.x];
  if (!meet(ranks, ++meeting)) return;
  const std::int64_t all = count * words, stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t first = blockIdx.x * kThreads + threadIdx.x; first < all; first += kAtOnce * stride) {
    Word some[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const std::int64_t at = min(first + u * stride, all - 1), entry = words == 1 ? at : at / words;
      const auto* there = static_cast<const Word*>(ncclGetLsaPointer(from, 0, owners[entry]));
      some[u] = there[static_cast<std::int64_t>(places[entry]) * words + (at - entry * words)];
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u)
      if (first + u * stride < all) to[first + u * stride] = some[u];
  }
  if (!meet(ranks, ++meeting)) return;
  if (threadIdx.x == 0) ranks.meetings[blockIdx.x] = meeting;
}

}  // namespace

std::string NcclCommunicator::why_no_peer_access() const {
  const int reached = ncclTeamLsa(impl_->comm).nRanks, all = impl_->communicator.size();
  if (reached == all) return {};
  return "of " + std::to_string(all) + " GPUs only " + std::to_string(reached) +
         " can read each other's memory directly; use halo";
}

int NcclCommunicator::blocks_to_pull(std::int64_t bytes) {
  constexpr std::int64_t kBytesABlock = kThreads * kAtOnce * 8;
  return static_cast<int>(std::clamp<std::int64_t>(bytes / kBytesABlock, 1, kMostBlocks));
}

NcclCommunicator::Meeting::Meeting(NcclCommunicator& owner, int blocks)
    : blocks_(blocks),
      arrived_(owner, static_cast<std::size_t>(blocks * owner.impl_->communicator.size()) * sizeof(unsigned)) {
  Impl& impl = *owner.impl_;
  impl.communicator.together([&] {
    const DeviceGuard guard(impl.device);
    if (impl.ended == nullptr) {
      SHARDMAT_CUDA_CHECK(cudaMallocHost(&impl.ended, sizeof(int)));
      *impl.ended = 0;
    }
    meetings_ = Buffer(impl.device, static_cast<std::size_t>(blocks) * sizeof(unsigned));
    Stream stream(impl.device);
    fill_bytes(arrived_.data(), 0, static_cast<std::size_t>(blocks * impl.communicator.size()) * sizeof(unsigned), stream);
    fill_bytes(meetings_.data(), 0, meetings_.bytes(), stream);
    stream.synchronize();
  });  // nobody arrives before all have set their numbers to 0
}

void NcclCommunicator::pull(const Pull& pull, Stream& stream) {
  const Ranks ranks{impl_->communicator.rank(), impl_->communicator.size(),
                    static_cast<ncclWindow_t>(pull.meeting->arrived_.window()), pull.meeting->meetings_.as<unsigned>(),
                    impl_->ended};
  const auto launch = [&]<class Word>(Word) {
    cuda::launch_blocks(pull_entries<Word>, pull.meeting->blocks(), kThreads, 0, stream, ranks,
                        static_cast<ncclWindow_t>(pull.from->window()), static_cast<int>(pull.entry_bytes / sizeof(Word)),
                        pull.count, pull.places, pull.owners, static_cast<Word*>(pull.to));
  };
  impl_->launch(
      stream,
      [&] {
        if (pull.entry_bytes % 16 == 0) launch(int4{});
        else if (pull.entry_bytes % 8 == 0) launch(int2{});
        else if (pull.entry_bytes % 4 == 0) launch(int{});
        else launch(short{});
      },
      "reading x in other GPUs' memory");
}

}  // namespace shardmat
