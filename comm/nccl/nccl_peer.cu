// Reaching the memory of other GPUs inside kernels, through the symmetric windows of NCCL 2.28 and newer. The barrier
// between ranks is our own, on memory of such a window: NCCL's waits for ever if a rank is gone, this one ends when the
// communicator breaks.
#include <nccl_device.h>

#include <algorithm>
#include <string>

#include "comm/nccl/nccl_impl.h"
#include "kernels/base/cuda_check.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/peer_sums.h"

namespace shardmat {
namespace {

constexpr int kThreads = 512, kAtOnce = 4, kSumThreads = 64;
constexpr int kFewBlocks = 16, kFewWideBlocks = 8, kMostBlocks = 128;  // wide: of 16-byte words
constexpr unsigned kSpinsALook = 1024;                                 // between looks at host memory
constexpr unsigned kLost = ~0u;  // in place of a count of meetings: a rank did not come to one

struct Ranks {
  int rank, count;
  ncclWindow_t written;  ///< by other ranks, from `offset` on: [block][rank]
  std::size_t offset;
  unsigned* times;            ///< this rank's own count of the meetings of each block
  const volatile int* ended;  ///< 1: nobody is coming
};

__device__ unsigned* arrived_at(const Ranks& ranks, int at, int who) {
  return static_cast<unsigned*>(ncclGetLsaPointer(ranks.written, ranks.offset, at)) + blockIdx.x * ranks.count + who;
}

/// The number of the meeting after this one; they start again some day.
__device__ unsigned after(unsigned meeting) { return meeting + 1 == kLost ? 0 : meeting + 1; }

/// Block b tells block b of every other rank that it is there; what it wrote before is seen by who waits for it.
__device__ void arrive(const Ranks& ranks, unsigned meeting) {
  __syncthreads();
  for (int r = static_cast<int>(threadIdx.x); r < ranks.count; r += kThreads)
    if (r != ranks.rank)
      asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(arrived_at(ranks, r, ranks.rank)), "r"(meeting) : "memory");
}

/// Block b of this rank waits for block b of every other; what they wrote before is seen after. False: a rank is lost.
__device__ bool wait_for_others(const Ranks& ranks, unsigned meeting) {
  bool lost = false;
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

/// Entries of `words` words; the blocks share out the words. Which ones are next is looked up while these are on their way.
/// Stores take less than loads from there would: they need no answer one by one, so that a few blocks fill the link, and
/// scattered entries go over it packed.
template <class Word>
__global__ void __launch_bounds__(kThreads)
    push_entries(Ranks ranks, ncclWindow_t to, std::size_t offset, int words, std::int64_t count,
                 const std::int32_t* __restrict__ places, const std::uint8_t* __restrict__ receivers,
                 const std::int64_t* __restrict__ shifts, const Word* from) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads, at = blockIdx.x * kThreads + threadIdx.x;
  const std::int64_t step = stride / words;
  const int step_words = static_cast<int>(stride % words);
  std::int64_t entry = at / words;
  int word = static_cast<int>(at % words);
  const Word* source[kAtOnce];
  Word* target[kAtOnce];  // null for none; the first one: then for all
  const auto look_up = [&] {
    target[0] = nullptr;
    if (entry >= count) return;
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const std::int64_t real = min(entry, count - 1);  // without a branch, so that the look-ups do not wait for each other
      const int receiver = receivers[real];
      source[u] = from + static_cast<std::int64_t>(places[real]) * words + word;
      Word* there = static_cast<Word*>(ncclGetLsaPointer(to, offset, receiver)) + (real + shifts[receiver]) * words + word;
      target[u] = entry < count ? there : nullptr;
      entry += step, word += step_words;
      if (word >= words) word -= words, ++entry;
    }
  };
  cuda::wait_for_previous();  // all threads, and before the kernel behind begins: that does not wait for what came before
  cuda::let_next_begin();
  unsigned meeting = ranks.times[blockIdx.x];
  if (meeting == kLost) return;  // or late ranks would get what this one made of an x that did not come
  const auto lost = [&] {
    if (threadIdx.x == 0) ranks.times[blockIdx.x] = kLost;
  };
  arrive(ranks, meeting = after(meeting));
  look_up();
  if (!wait_for_others(ranks, meeting)) return lost();
  while (target[0] != nullptr) {
    Word values[kAtOnce];
    Word* there[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      there[u] = target[u];
      values[u] = __ldcg(source[u]);  // not through the L1 cache, which the product beside needs
    }
    look_up();
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u)
      if (there[u] != nullptr) *there[u] = values[u];
  }
  arrive(ranks, meeting = after(meeting));
  if (!wait_for_others(ranks, meeting)) return lost();
  if (threadIdx.x == 0) ranks.times[blockIdx.x] = meeting;
}

/// One thread block.
__global__ void __launch_bounds__(kSumThreads) sum_values(PeerBoard board, double* values) {
  extern __shared__ double of_ranks[];  // [rank][value]
  cuda::after_previous();
  const unsigned round = *board.rounds + 1;
  const int all = board.ranks * board.values, thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < all; i += kSumThreads)
    cuda::write_to_board(board, i / board.values, round, i % board.values, values[i % board.values]);
  bool lost = false;
  for (int i = thread; i < all && !lost; i += kSumThreads)
    lost = !cuda::wait_for_board(
        board, [&] { return cuda::read_from_board(board, i / board.values, round, i % board.values, of_ranks[i]); });
  if (__syncthreads_or(lost) != 0) return;
  for (int v = thread; v < board.values; v += kSumThreads) {
    double sum = 0;
    for (int r = 0; r < board.ranks; ++r) sum += of_ranks[r * board.values + v];
    values[v] = sum;
  }
  if (thread == 0) *board.rounds = round;
}

__global__ void look_up_slots(ncclWindow_t window, std::size_t offset, int ranks, std::uint64_t** slots) {
  for (int r = static_cast<int>(threadIdx.x); r < ranks; r += static_cast<int>(blockDim.x))
    slots[r] = static_cast<std::uint64_t*>(ncclGetLsaPointer(window, offset, r));
}

}  // namespace

int NcclCommunicator::Impl::gpus_reached() const { return nccl().TeamLsa(comm).nRanks; }

int NcclCommunicator::blocks_to_push(std::int64_t bytes, std::size_t entry_bytes, bool beside) {
  constexpr std::int64_t kBytesABlock = kThreads * kAtOnce * 8, kBytesOfMany = 16 * kBytesABlock;
  const int most_few = beside && entry_bytes % 16 == 0 ? kFewWideBlocks : kFewBlocks;
  const auto few = std::clamp<std::int64_t>(bytes / kBytesABlock, 1, most_few);
  return static_cast<int>(beside ? few : std::max(few, std::min<std::int64_t>(bytes / kBytesOfMany, kMostBlocks)));
}

Buffer NcclCommunicator::Impl::zero_for_all(const Memory& written, std::size_t counters) {
  Buffer mine;
  communicator.run_agreed([&] {
    const DeviceGuard guard(device);
    if (ended == nullptr) {
      SHARDMAT_CUDA_CHECK(cudaMallocHost(&ended, sizeof(int)));
      *ended = 0;
    }
    mine = Buffer(device, counters * sizeof(unsigned));
    Stream stream(device);
    fill_bytes(written.data(), 0, written.bytes(), stream);
    fill_bytes(mine.data(), 0, mine.bytes(), stream);
    stream.synchronize();
  });
  return mine;
}

NcclCommunicator::Meeting::Meeting(NcclCommunicator& owner, int blocks)
    : blocks_(blocks),
      arrived_(owner, static_cast<std::size_t>(blocks * owner.impl_->communicator.size()) * sizeof(unsigned)),
      meetings_(owner.impl_->zero_for_all(arrived_, static_cast<std::size_t>(blocks))) {}

NcclCommunicator::Board::Board(NcclCommunicator& owner, int values)
    : values_(values),
      slots_(owner, static_cast<std::size_t>(4 * owner.impl_->communicator.size() * values) * sizeof(std::uint64_t)),
      rounds_(owner.impl_->zero_for_all(slots_, 1)) {
  if (!slots_.symmetric()) return;
  const NcclCommunicator::Impl& impl = *owner.impl_;
  impl.communicator.run_agreed([&] {
    const int ranks = impl.communicator.size();
    pointers_ = Buffer(impl.device, static_cast<std::size_t>(ranks) * sizeof(std::uint64_t*));
    Stream stream(impl.device);
    cuda::launch_blocks(look_up_slots, 1, 32, 0, stream, static_cast<ncclWindow_t>(slots_.window()), slots_.offset(), ranks,
                        pointers_.as<std::uint64_t*>());
    stream.synchronize();
    view_ = {impl.communicator.rank(), ranks, values, pointers_.as<std::uint64_t*>(), rounds_.as<unsigned>(), impl.ended};
  });
}

void NcclCommunicator::sum(const Board& board, double* values, Stream& stream) {
  const PeerBoard& view = board.view();
  const std::size_t shared = static_cast<std::size_t>(view.ranks) * static_cast<std::size_t>(view.values) * sizeof(double);
  impl_->launch(
      stream, [&] { cuda::launch_grid_early(sum_values, 1, 1, dim3(kSumThreads), shared, stream, view, values); },
      "sum over GPUs");
}

void NcclCommunicator::push(const Push& push, Stream& stream) {
  const Ranks ranks{impl_->communicator.rank(),
                    impl_->communicator.size(),
                    static_cast<ncclWindow_t>(push.meeting->arrived_.window()),
                    push.meeting->arrived_.offset(),
                    push.meeting->meetings_.as<unsigned>(),
                    impl_->ended};
  const auto launch = [&]<class Word>(Word) {
    cuda::launch_grid_early(push_entries<Word>, push.meeting->blocks(), 1, dim3(kThreads), 0, stream, ranks,
                            static_cast<ncclWindow_t>(push.x->window()), push.x->offset(),
                            static_cast<int>(push.entry_bytes / sizeof(Word)), push.count, push.places, push.receivers,
                            push.shifts, static_cast<const Word*>(push.x->data()));
  };
  impl_->launch(
      stream,
      [&] {
        if (push.entry_bytes % 16 == 0) launch(int4{});
        else if (push.entry_bytes % 8 == 0) launch(int2{});
        else if (push.entry_bytes % 4 == 0) launch(int{});
        else launch(short{});
      },
      "writing x into other GPUs' memory");
  stream.let_next_begin(true);
}

bool NcclCommunicator::push_lets_next_begin() const { return cuda::compiled_for_9_0(push_entries<int4>, impl_->device); }

}  // namespace shardmat
