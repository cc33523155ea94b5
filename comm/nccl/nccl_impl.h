// The inside of NcclCommunicator, shared by the files that include nccl.h.
//
// The NCCL communicator is a *blocking* one. A non-blocking one would start a thread for every collective,
// which costs more than the collective, and would put the launch on a thread that is not recording the graph.
// So the calls that meet other ranks on the host (creation, windows, the first collective of its kind, the
// end) run on a thread of their own, and the caller waits for that with the deadline; all others only launch
// a kernel.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>

#include "comm/nccl/nccl_communicator.h"

namespace shardmat {

struct NcclCommunicator::Impl {
  enum Operation { kAllGather, kAllReduceSum, kTransfer };
  /// Operation, value type and count of a collective: NCCL picks its algorithm, and so its connections, by
  /// these.
  using Signature = std::tuple<int, int, std::size_t>;

  Impl(Communicator& ranks, Device where) : communicator(ranks), device(where) {}
  ~Impl();

  /// Runs a call that may wait for other ranks. `call` must own what it refers to: after the deadline it goes
  /// on alone.
  ncclResult_t guarded(std::function<ncclResult_t()> call, const char* what);
  /// Enqueues a collective on the stream, connecting the ranks first if it is a new one.
  void enqueue(const Signature& signature, Stream& stream, const std::function<ncclResult_t()>& call, const char* what);
  /// Launches a kernel of our own that meets other ranks.
  void launch(Stream& stream, const std::function<void()>& kernel, const char* what);
  /// GPUs, this one included, whose memory kernels of this one may reach.
  int gpus_reached() const;
  /// Makes counters of this rank; they and what other ranks will write are 0 on all ranks before any goes on. Collective.
  Buffer zero_for_all(const Memory& written, std::size_t counters);
  /// After a failed collective the ranks are out of step: marks the communicator broken and throws.
  void check(ncclResult_t result, const char* what);
  void check_async(const char* what);
  /// Keeps the launches ahead of the device few, so that none blocks without a deadline in a full queue.
  void throttle(cudaStream_t stream, const char* what);
  /// Ends NCCL's work without the other ranks. Gives up after a short grace, as aborting can hang as well.
  void abort() noexcept;

  /// Memory for collectives, by the number of its creation, which is the same on all ranks.
  struct Block {
    void* data;
    void* window;  ///< ncclWindow_t; null if not symmetric
    bool retired = false;  ///< nobody here uses it any more
  };

  Communicator& communicator;
  Device device;
  ncclComm_t comm = nullptr;
  std::map<std::uint64_t, Block> blocks;
  std::uint64_t next_block = 0;
  int exceptions_at_start = 0;
  std::set<Signature> connected;
  std::array<cudaEvent_t, 2> marks{};
  std::uint64_t calls = 0;
  int transfers = 0;
  /// Empty if memory can be a symmetric window, or not known yet; empty on all ranks or on none.
  std::string why_no_windows;
  /// Pinned memory that kernels waiting for other ranks look at; 1 ends them. Made on first use.
  int* ended = nullptr;
};

/// "unhandled cuda error: …" with NCCL's own last message.
std::string nccl_error_text(ncclResult_t result, ncclComm_t comm);

}  // namespace shardmat
