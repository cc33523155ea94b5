// Contexts for programs that have more ranks than GPUs: ranks without one, the feeders, hand their rows and vectors to the
// rank of their group that owns a GPU (comm/feeders).
//
//   shardmat::GroupContext context(ranks, {});                        // any number of ranks a GPU
//   shardmat::GroupMatrix a(context, [&] { return shardmat::GivenRows{my_rows, options}; });
//   auto product = a.product([] { return shardmat::ProductOptions{}; });
//   a.multiply(product, 1, x, 0, y);                                  // x and y: this rank's rows, in host memory
//
// An owner's rows are its own, then those of its feeders by rank: the matrix, its bits and the steps of a solve are those of
// a program that runs on the owners alone and gives these rows. Where every rank has a GPU, or works on the host, there are
// no feeders, and nothing is copied.
//
// Threads: as Context. Everything that says collective is called by all ranks, feeders too.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "comm/feeders/rank_group.h"
#include "comm/feeders/rank_groups.h"
#include "runtime/context.h"

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
  /// This rank's group. REQUIRES: has_feeders().
  RankGroup& group() { return *group_; }

  Backend backend() const { return backend_; }
  /// Name of the device of this rank's owner.
  const std::string& device_name() const { return device_name_; }
  /// The stream of the context; on a feeder, one of the host.
  Stream& stream() { return owns() ? context().stream() : host_stream_; }

  /// Throws Error(usage) where there are feeders and `device` is a GPU: ranks hand over what lies in host memory.
  void require_on_host(Device device, const char* what) const;

 private:
  Communicator& ranks_;
  std::optional<RankGroup> group_;
  std::optional<Context> context_;
  Backend backend_ = Backend::host;
  std::string device_name_;
  Stream host_stream_{Device{}};
};

}  // namespace shardmat
