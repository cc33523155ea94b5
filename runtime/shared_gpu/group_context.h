// Contexts for programs that have more ranks than GPUs: ranks without one, the feeders, hand their rows and vectors to the
// rank of their group that owns a GPU (comm/shared_gpu).
//
//   shardmat::GroupContext context(ranks, {});                        // any number of ranks a GPU
//   shardmat::GroupMatrix a(context, [&] { return shardmat::GivenRows{my_rows, options}; });
//   auto product = a.product([] { return shardmat::ProductOptions{}; });
//   a.multiply(product, 1, x, 0, y);                                  // x and y: this rank's rows
//
// An owner's rows are its own, then those of its feeders by rank: the matrix, its bits and the steps of a solve are those of
// a program that runs on the owners alone and gives these rows. Where every rank has a GPU, or works on the host, there are
// no feeders, and nothing is copied. Arrays of feeders lie in host memory, or in memory of their owner's GPU (hand_over.h).
//
// Threads: as Context. Everything that says collective is called by all ranks, feeders too.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "comm/shared_gpu/rank_group.h"
#include "comm/shared_gpu/rank_groups.h"
#include "runtime/context/context.h"
#include "runtime/shared_gpu/shared_allocations.h"

namespace shardmat {

struct GroupContextOptions {
  BackendChoice backend = BackendChoice::automatic;
  int threads = 0;  ///< host threads of each owner; 0: its share of the cores
  GroupChoice groups;
};

class GroupContext {
 public:
  /// Collective; the same error on all ranks. `ranks` must outlive the context.
  GroupContext(Communicator& ranks, const GroupContextOptions& options);
  GroupContext(const GroupContext&) = delete;
  GroupContext& operator=(const GroupContext&) = delete;

  /// All ranks, feeders too.
  Communicator& ranks() const { return ranks_; }
  /// Some ranks are feeders. The same on all ranks.
  bool has_feeders() const { return group_.has_value(); }
  /// This rank owns rows, on a device.
  bool owns() const { return context_.has_value(); }
  /// The context of the owners. Throws Error(usage) on a feeder.
  Context& context();
  const Context& context() const { return const_cast<GroupContext*>(this)->context(); }
  /// From any thread: as Communicator::give_up(), for waits of owners and of feeders.
  void give_up(const Error& why);
  /// This rank's group. REQUIRES: has_feeders().
  RankGroup& group() { return *group_; }

  Backend backend() const { return backend_; }
  /// Name of the device of this rank's owner.
  const std::string& device_name() const { return device_name_; }
  /// The device of this rank's owner, as this process numbers it; ordinal -1 if this process does not see it.
  Device device() const { return owns() ? context().device() : device_; }
  /// The stream of the context; on a feeder, one of the host.
  Stream& stream() { return owns() ? context().stream() : host_stream_; }
  /// A stream of this process for memory of the host, or of the GPU of this rank's owner. Throws Error(usage) if this
  /// process does not see it.
  Stream& stream_of(Device device);
  /// What CUDA knows of an array in memory of a GPU that this rank gives. Throws Error(usage), naming both GPUs, unless its
  /// owner works on this GPU, and if the array ends behind its allocation. `what` names the array in messages: "X".
  DeviceAddress require_on_device(std::string_view what, const void* array, std::size_t bytes) const;
  /// Memory of GPUs that feeders pass on and owners open.
  SharedAllocations& allocations() { return allocations_; }

 private:
  Communicator& ranks_;
  std::optional<RankGroup> group_;
  std::optional<Context> context_;
  Backend backend_ = Backend::host;
  std::string device_name_, gpu_;  ///< gpu_: bus number of the owner's GPU
  Device device_;                  ///< on a feeder
  Stream host_stream_{Device{}};
  std::optional<Stream> device_stream_;  ///< on a feeder
  SharedAllocations allocations_;
};

}  // namespace shardmat
