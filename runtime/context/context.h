// What every distributed operation runs in: the ranks, this rank's device, its stream, its number of host threads.
//
// Threads: any thread may make and use a context, one at a time. Two threads may work with two contexts at once if their
// communicators are different and MPI gives MPI_THREAD_MULTIPLE. Functions that work for a context open a ContextScope: it
// sets the context's device and host threads for the calling thread, and restores those of the caller.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "comm/communicator.h"
#include "comm/exchange/exchange.h"
#include "comm/nccl/nccl_communicator.h"
#include "comm/placement.h"
#include "kernels/base/device.h"
#include "kernels/base/isa.h"
#include "kernels/base/parallel.h"
#include "runtime/context/row_maps.h"

namespace shardmat {

class Context {
 public:
  /// Collective: places the ranks on devices and, with several GPUs, starts NCCL (see NcclCommunicator for the environment
  /// variable that it sets). `threads`: host threads of each rank; 0: its share of the cores. Throws the same error on all
  /// ranks.
  Context(Communicator& communicator, BackendChoice backend, int threads = 0);

  /// A context of this rank alone, on its device in `among`; on the host also of all ranks of `among`, for another thread.
  /// Sends no messages.
  Context(Communicator& self, const Context& among);

  Communicator& communicator() const { return communicator_; }
  const Placement& placement() const { return placement_; }
  Device device() const { return placement_.device; }
  /// Host threads of work for this context.
  int threads() const { return placement_.threads; }
  NcclCommunicator* nccl() const { return nccl_.get(); }
  Stream& stream() { return stream_; }
  /// A stream of high priority, to move x concurrently with products.
  Stream& exchange_stream() { return exchange_stream_; }
  /// Blocks until all work given to `stream` is done. This work may wait for other ranks. If one is lost, this throws
  /// Error(rank_lost) after the communicator's deadline; Stream::synchronize() would block for ever. `what` names the work
  /// in the message: "a product".
  void wait(Stream& stream, const char* what) const;
  /// Bytes read plus bytes written in a second by a copy on this rank's device, while the other ranks copy, too. Measured by
  /// the first call, which all ranks of the context must make at about the same time; later calls return the same figure.
  double copy_bandwidth();
  /// Memory of the host that the first call of copy_bandwidth() takes until it returns; 0 on a GPU.
  std::int64_t bytes_to_copy() const;
  RowMaps& row_maps() { return row_maps_; }
  ExchangeContext exchange_context(ValueType type, std::int64_t right_hand_sides) const {
    return {communicator_, nccl_.get(), device(), type, right_hand_sides};
  }

 private:
  Communicator& communicator_;
  Placement placement_;
  std::unique_ptr<NcclCommunicator> nccl_;
  Stream stream_, exchange_stream_;
  std::optional<double> copy_bandwidth_;
  RowMaps row_maps_;
};

/// While in scope the calling thread works for a context: on its device, with its number of host threads and the instruction
/// set of its ranks. Every public function that has a context opens one; a program needs it only for kernels of its own on
/// the context's device.
class ContextScope {
 public:
  explicit ContextScope(const Context& context)
      : threads_(context.threads()), isa_(context.placement().isa), device_(context.device()) {}

 private:
  ThreadCount threads_;
  IsaScope isa_;
  DeviceGuard device_;
};

}  // namespace shardmat
