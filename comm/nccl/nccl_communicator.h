// NCCL ownership: creation with a deadline, asynchronous errors polled, abort instead of a hang, and window
// memory. nccl_stub.cpp stands in for it in a build without NCCL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "comm/communicator.h"
#include "kernels/base/device.h"
#include "kernels/base/types.h"

namespace shardmat {

bool built_with_nccl();
/// "2.28.9", or empty without NCCL.
std::string nccl_version();

/// One NCCL communicator over the ranks of a Communicator, each on its own device. Used by one thread. When
/// the Communicator breaks, for whatever reason, NCCL is aborted, so that kernels waiting for a lost rank end
/// and device memory can be freed.
class NcclCommunicator {
 public:
  /// Collective. Throws Error(resources) if this build has no NCCL (with the remedy) or there is no room for a first window,
  /// Error(rank_lost) if the ranks do not meet within the deadline. REQUIRES: no two ranks share a device (check before:
  /// comm/placement.h). `communicator` outlives this. Sets NCCL_GRAPH_REGISTER=0 in the environment, which NCCL reads once:
  /// a program that records NCCL's collectives in graphs of its own before must do so itself.
  NcclCommunicator(Communicator& communicator, Device device);
  /// Collective, with the deadline; aborts instead if the communicator is broken or an exception is on its
  /// way. Frees retired memory. REQUIRES: every Memory of it, and every Graph that recorded its collectives, is gone (NCCL
  /// waits for such graphs to die).
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  /// Uninitialised memory for collectives; a symmetric window where NCCL has windows that kernels reach (2.28 and newer) and
  /// all GPUs can reach each other, else plain device memory. Creation is collective: the same size on every rank. Throws
  /// the same Error(resources) on all ranks if there is no room. Destruction is not collective: ranks may destroy memory in
  /// any order, and free_retired() frees what all have destroyed.
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
    /// Why it is not symmetric; empty if it is.
    const std::string& why_no_window() const { return why_no_window_; }

   private:
    NcclCommunicator& owner_;
    std::size_t bytes_;
    std::uint64_t number_ = 0;  ///< of its creation
    void* data_ = nullptr;
    void* window_ = nullptr;
    Buffer plain_;
    std::string why_no_window_;
  };
  /// Frees memory that all ranks have destroyed. Collective; waits for the device if this rank has
  /// destroyed any.
  void free_retired();

  /// In-place all-gather: rank p's `count` values lie at data + p·count. Stream-ordered. May be captured in a
  /// graph once the same call has run outside of one: NCCL connects ranks on first use, and only there a
  /// deadline guards that.
  void all_gather_in_place(void* data, std::size_t count, ValueType type, Stream& stream);
  /// Sum of `count` f64 values over the ranks, in place. Stream-ordered; captured as above.
  void all_reduce_sum(double* data, std::size_t count, Stream& stream);

  /// Sends and receives at once, to and from memory of the device. Stream-ordered; captured as above. `number` tells apart
  /// transfers between other ranks or of other sizes; the same on all ranks (see next_transfer()).
  void transfer(int number, std::span<const Communicator::Transfer::Outgoing> sends,
                std::span<const Communicator::Transfer::Incoming> receives, Stream& stream);
  /// Called as often on all ranks.
  int next_transfer();

  /// Why ranks cannot reach each other's memory inside a kernel, and what to use; empty if they can. Empty on all ranks or
  /// on none.
  std::string why_no_peer_access() const;

  /// Where the thread blocks of ranks meet inside a kernel: block b waits for block b of all others. Collective, as Memory.
  class Meeting {
   public:
    Meeting(NcclCommunicator& owner, int blocks);
    int blocks() const { return blocks_; }
    /// As Memory::why_no_window().
    const std::string& why_no_window() const { return arrived_.why_no_window(); }

   private:
    friend class NcclCommunicator;
    int blocks_;
    Memory arrived_;   ///< numbers [block][rank] that other ranks write
    Buffer meetings_;  ///< that each block has had
  };
  /// Blocks that it takes to write so many bytes at the speed of the link. With `beside` few, to leave a product room; fewer
  /// still for entries of whole 16 bytes, as a block then has twice the bytes on the way. A large block of a product does
  /// not fit beside one of these.
  static int blocks_to_push(std::int64_t bytes, std::size_t entry_bytes, bool beside);

  struct Push {
    const Memory* x;                ///< on every rank; its entries are read here and written there
    const Meeting* meeting;         ///< used by nobody else at the same time
    std::size_t entry_bytes;        ///< even
    std::int64_t count;             ///< entries
    const std::int32_t* places;     ///< of the entries in x here
    const std::uint8_t* receivers;  ///< ranks that get them
    const std::int64_t* shifts;     ///< one a rank: entry i goes to place i + shifts[receiver] of its x
  };
  /// Waits until all ranks are here, so that nobody reads what is to be overwritten, writes the entries into the receivers'
  /// memory, and waits until all have written. The next kernel may begin beside it (Stream::next_may_begin()), once all its
  /// blocks have started: what waits for other ranks never waits for room. Stream-ordered, may be captured in a graph;
  /// called by all ranks in the same order. If a rank is lost the kernel ends when the communicator breaks. REQUIRES:
  /// symmetric memory.
  void push(const Push& push, Stream& stream);
  /// The device can (compute capability 9.0) and the code is made for it.
  bool push_lets_next_begin() const;

  /// Where ranks leave each other a few values. Collective, as Memory.
  class Board {
   public:
    static constexpr int kMostRanks = 128;
    Board(NcclCommunicator& owner, int values);
    int values() const { return values_; }
    bool symmetric() const { return slots_.symmetric(); }

   private:
    friend class NcclCommunicator;
    int values_;
    Memory slots_;   ///< words [round % 2][rank][value][half] that ranks write: the round, and half of the value
    Buffer rounds_;  ///< that there have been
  };
  /// values[i] becomes its sum over the ranks, in rank order, by one block of threads: each rank writes its values to all
  /// others and waits for theirs. Stream-ordered, captured and ended as push(). REQUIRES: symmetric memory.
  void sum(const Board& board, double* values, Stream& stream);

  /// Polls the stream, NCCL's asynchronous error and the deadline; on failure aborts NCCL, marks the
  /// communicator broken and throws Error(rank_lost).
  void wait(Stream& stream, const char* what);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace shardmat
