// Owns NCCL: creates it with a deadline, polls asynchronous errors, aborts instead of hanging, and owns window memory. A
// build without NCCL uses nccl_stub.cpp instead.
//
// Threads: one thread at a time uses it, whatever that thread's current device is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "comm/communicator.h"
#include "kernels/base/device.h"
#include "kernels/base/peer_board.h"
#include "kernels/base/types.h"

namespace shardmat {

/// "2.28.9", the library that is loaded; empty if there is none.
std::string nccl_version();
/// "2.28", that of the build and the oldest that can be loaded; empty for a build without NCCL.
std::string nccl_version_of_build();

/// One NCCL communicator over the ranks of a Communicator, each on its own device. Used by one thread. When the Communicator
/// breaks, for whatever reason, NCCL is aborted: kernels that wait for a lost rank end, and device memory can be freed.
class NcclCommunicator {
 public:
  /// Collective. Throws Error(resources) if this build has no NCCL (with the remedy) or there is no memory for a first
  /// window; Error(rank_lost) if a rank does not call within the deadline. REQUIRES: no two ranks share a device (see
  /// comm/placement.h); `communicator` outlives this object. Sets NCCL_GRAPH_REGISTER=0 in the environment. NCCL reads it
  /// only once: a program that records NCCL collectives in graphs before this call must set it itself.
  NcclCommunicator(Communicator& communicator, Device device);
  /// Collective, with the deadline; aborts NCCL instead if the communicator is broken or an exception is passing. Frees
  /// retired memory. REQUIRES: all its Memory objects, and all Graphs that recorded its collectives, are destroyed (NCCL
  /// waits until such graphs are destroyed).
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  /// Uninitialised memory for collectives. It is a symmetric window if kernels can reach NCCL's windows (2.28 and newer) and
  /// all GPUs can reach each other; else plain device memory. Creation is collective, with the same size on every rank, and
  /// throws the same Error(resources) on all ranks if there is not enough memory. Destruction is not collective: ranks may
  /// destroy memory in any order, and free_retired() frees the memory that all ranks have destroyed. Small memory is a piece
  /// of a window that many share: a window of its own takes some 20 ms.
  class Memory {
   public:
    Memory(NcclCommunicator& owner, std::size_t bytes);
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    void* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }
    bool symmetric() const { return window_ != nullptr; }
    /// ncclWindow_t as a void pointer; null if not symmetric.
    void* window() const { return window_; }
    /// Where it begins in the window, in bytes; the same on all ranks.
    std::size_t offset() const { return offset_; }
    /// Why it is not symmetric; empty if it is.
    const std::string& why_no_window() const { return why_no_window_; }

   private:
    NcclCommunicator& owner_;
    std::size_t bytes_;
    std::uint64_t number_ = 0;  ///< counts creations
    void* data_ = nullptr;
    void* window_ = nullptr;
    std::size_t offset_ = 0;
    Buffer plain_;
    std::string why_no_window_;
  };
  /// Frees the memory that all ranks have destroyed. Collective; waits for the device if this rank has destroyed any.
  void free_retired();

  /// In-place all-gather: the `count` values of rank p lie at data + p·count. Stream-ordered. May be captured in a graph
  /// after the same call has run outside a graph: the first call connects the ranks, and has a deadline only outside a
  /// graph.
  void all_gather_in_place(void* data, std::size_t count, ValueType type, Stream& stream);
  /// Sums `count` f64 values over the ranks, in place. Stream-ordered; captured as above.
  void all_reduce_sum(double* data, std::size_t count, Stream& stream);

  /// Sends and receives concurrently, from and to device memory. Stream-ordered; captured as above. `number` identifies a
  /// set of partners and sizes; it comes from next_transfer() and is the same on all ranks.
  void transfer(int number, std::span<const Communicator::Transfer::Outgoing> sends,
                std::span<const Communicator::Transfer::Incoming> receives, Stream& stream);
  /// A new number for transfer(). All ranks call it the same number of times.
  int next_transfer();

  /// Why kernels cannot reach the memory of other GPUs, and which exchange to use instead; empty if they can. Empty on all
  /// ranks or on none.
  std::string why_no_peer_access() const;

  /// A barrier inside a kernel: thread block b of a rank waits for thread block b of all other ranks. Construction is
  /// collective, as for Memory.
  class Meeting {
   public:
    Meeting(NcclCommunicator& owner, int blocks);
    int blocks() const { return blocks_; }
    /// As Memory::why_no_window().
    const std::string& why_no_window() const { return arrived_.why_no_window(); }

   private:
    friend class NcclCommunicator;
    int blocks_;
    Memory arrived_;   ///< counters [block][rank] that other ranks write
    Buffer meetings_;  ///< number of barriers that each block has passed
  };
  /// Number of thread blocks that write `bytes` at the speed of the link. With `beside`, only few blocks, which leave room
  /// for a concurrent product; even fewer if entry_bytes is a multiple of 16, because such a block has twice the bytes in
  /// flight. A large thread block of a product does not fit on a multiprocessor with one of these blocks.
  static int blocks_to_push(std::int64_t bytes, std::size_t entry_bytes, bool beside);

  struct Push {
    const Memory* x;                ///< x on every rank: entries are read from this rank's x and written to the receivers'
    const Meeting* meeting;         ///< no concurrent kernel uses it
    std::size_t entry_bytes;        ///< even
    std::int64_t count;             ///< number of entries to send
    const std::int32_t* places;     ///< position of each entry in this rank's x
    const std::uint8_t* receivers;  ///< rank that receives each entry
    const std::int64_t* shifts;     ///< one for each rank: entry i goes to position i + shifts[receiver] of its x
  };
  /// One kernel that waits for all ranks (nobody then reads the entries that will be overwritten), writes the entries into
  /// the receivers' memory, and waits until all ranks have written. The next kernel may begin as soon as all thread blocks
  /// of this kernel have started (Stream::next_may_begin()), so no block that other ranks wait for has to wait for room on
  /// the device. Stream-ordered; may be captured in a graph. All ranks call it in the same order. If a rank is lost, the
  /// kernel ends when the communicator breaks. REQUIRES: symmetric memory.
  void push(const Push& push, Stream& stream);
  /// True if device and code support an early start of the next kernel (compute capability 9.0).
  bool push_lets_next_begin() const;

  /// Memory in which ranks write each other a few values. Construction is collective, as for Memory.
  class Board {
   public:
    static constexpr int kMostRanks = 128;
    Board(NcclCommunicator& owner, int values);
    int values() const { return values_; }
    bool symmetric() const { return slots_.symmetric(); }
    /// For kernels that sum in passing (kernels/cuda/peer_sums.h). REQUIRES: symmetric memory.
    const PeerBoard& view() const { return view_; }

   private:
    int values_;
    Memory slots_;   ///< words [round % 2][rank][value][half] that ranks write: the round number and half of the value
    Buffer rounds_;  ///< number of rounds so far
    Buffer pointers_;
    PeerBoard view_;
  };
  /// Replaces values[i] by its sum over the ranks, in rank order. One thread block writes this rank's values to all other
  /// ranks and waits for their values. Stream-ordered; captured and ended as push(). REQUIRES: symmetric memory.
  void sum(const Board& board, double* values, Stream& stream);

  /// Waits for the stream: polls it, NCCL's asynchronous error and the deadline. On failure aborts NCCL, marks the
  /// communicator broken and throws Error(rank_lost).
  void wait(Stream& stream, const char* what);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace shardmat
