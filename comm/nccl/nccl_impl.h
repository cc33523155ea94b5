// The inside of NcclCommunicator, shared by the files that include nccl.h.
//
// The NCCL communicator is *blocking*. A non-blocking communicator would start a thread for every collective, which costs
// more than the collective, and would launch from a thread that does not record the graph. So calls that wait for other
// ranks on the host (creation, windows, the first collective of its kind, the end) run on a helper thread, and the caller
// waits for this thread with the deadline. All other calls only launch a kernel.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "comm/nccl/nccl_communicator.h"
#include "comm/nccl/nccl_library.h"

namespace shardmat {

struct NcclCommunicator::Impl {
  enum Operation { kAllGather, kAllReduceSum, kTransfer };
  /// Operation, value type and count of a collective. NCCL chooses its algorithm and its connections by these.
  using Signature = std::tuple<int, int, std::size_t>;

  Impl(Communicator& ranks, Device where) : communicator(ranks), device(where) {}
  ~Impl();

  /// Runs a call that may wait for other ranks, with the deadline. `call` must own everything that it uses, because it may
  /// still run after the deadline.
  ncclResult_t guarded(std::function<ncclResult_t()> call, const char* what);
  /// Enqueues a collective on the stream. Connects the ranks first if its signature is new.
  void enqueue(const Signature& signature, Stream& stream, const std::function<ncclResult_t()>& call, const char* what);
  /// Launches one of our own kernels that wait for other ranks.
  void launch(Stream& stream, const std::function<void()>& kernel, const char* what);
  /// Number of GPUs, this one included, whose memory this GPU's kernels can reach.
  int gpus_reached() const;
  /// Returns new counters set to 0, and sets `written` to 0, on all ranks before it returns on any. Collective.
  Buffer zero_for_all(const Memory& written, std::size_t counters);
  /// If `result` is a failure, the ranks are out of step: marks the communicator broken and throws.
  void check(ncclResult_t result, const char* what);
  void check_async(const char* what);
  /// Limits the number of queued launches: a launch into a full queue would block without a deadline.
  void throttle(cudaStream_t stream, const char* what);
  /// Aborts NCCL without the other ranks. Gives up after a short time, because aborting can hang, too.
  void abort() noexcept;

  /// Memory that NCCL has made.
  struct Made {
    void* data = nullptr;
    void* window = nullptr;  ///< ncclWindow_t; null if not symmetric
    std::string why_no_window;
  };
  Made make_memory(std::size_t bytes);
  /// Collective.
  void free_memory(const Made& made);

  /// Memory for collectives. Its key in `blocks` counts creations, which is the same on all ranks.
  struct Block {
    Made made;                      ///< empty for a piece
    std::optional<std::size_t> in;  ///< a piece: of this shared window …
    std::size_t offset = 0;         ///< … where it begins there
    bool retired = false;           ///< this rank has destroyed it
  };
  /// Small memory lies in these; they stay until the end. All ranks take the same pieces.
  struct Shared {
    Made made;
    std::map<std::size_t, std::size_t> taken;  ///< bytes by offset
  };
  Block take_piece(std::size_t bytes);
  void free_shared();

  Communicator& communicator;
  Device device;
  ncclComm_t comm = nullptr;
  std::map<std::uint64_t, Block> blocks;
  std::vector<Shared> shared;
  std::uint64_t next_block = 0;
  int exceptions_at_start = 0;
  std::set<Signature> connected;
  std::array<cudaEvent_t, 2> marks{};
  std::uint64_t calls = 0;
  int transfers = 0;
  /// Why memory cannot be a symmetric window; empty if it can, or if not known yet. Empty on all ranks or on none.
  std::string why_no_windows;
  /// Pinned memory that is polled by kernels that wait for other ranks; 1 ends them. Allocated on first use.
  int* ended = nullptr;
};

/// "unhandled cuda error: …" with NCCL's own last message.
std::string nccl_error_text(ncclResult_t result, ncclComm_t comm);

}  // namespace shardmat
