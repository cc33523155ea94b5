// What every distributed operation runs in: the ranks, this rank's device, its stream, its number of host threads.
//
// Ownership: the communicator must outlive the context, and the context its matrices, vectors and row maps.
// Threads: any thread may make and use a context, one at a time. Two threads may work with two contexts at once if their
// communicators are different and MPI gives MPI_THREAD_MULTIPLE. Functions that work for a context set its device and host
// threads for the calling thread, and restore those of the caller. Collective: the constructor for several ranks; other
// functions say so.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "comm/communicator.h"
#include "comm/placement.h"
#include "kernels/base/device.h"
#include "kernels/base/types.h"

namespace shardmat {

struct ExchangeContext;
class Leftovers;
class NcclCommunicator;
struct RowMaps;

class Context {
 public:
  /// Collective: places the ranks on devices and, with several GPUs, starts NCCL (see NcclCommunicator for the environment
  /// variable that it sets). `threads`: host threads of each rank; 0: its share of the cores. Throws the same error on all
  /// ranks.
  Context(Communicator& communicator, BackendChoice backend, int threads = 0);

  /// A context on this rank's device in `among`, for `self`: this rank alone, or on the host also all ranks of `among`, for
  /// another thread. Sends no messages.
  Context(Communicator& self, const Context& among);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

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
  RowMaps& row_maps() { return *row_maps_; }
  Leftovers& leftovers() { return *leftovers_; }
  ExchangeContext exchange_context(ValueType type, std::int64_t right_hand_sides) const;

 private:
  Communicator& communicator_;
  Placement placement_;
  std::unique_ptr<NcclCommunicator> nccl_;
  Stream stream_, exchange_stream_;
  std::optional<double> copy_bandwidth_;
  std::unique_ptr<RowMaps> row_maps_;
  std::unique_ptr<Leftovers> leftovers_;
};

}  // namespace shardmat
