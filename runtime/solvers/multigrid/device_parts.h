// What the set-up on several GPUs exchanges: rows and values of nodes that another rank has. They go through host memory,
// for they are few beside the rows that stay.
//
// Threads: one thread of each rank. Collective, unless it says so.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kernels/blocks/parts.h"
#include "runtime/solvers/multigrid/nodes.h"

namespace shardmat::multigrid {

/// The devices cannot go on; the host can. Why, for the report.
struct LeaveDevice {
  std::string why;
};

/// Local work of all ranks between collective calls. If it throws LeaveDevice, blocks::TooWide or Error(resources) on one
/// rank, all throw LeaveDevice with what the lowest of these ranks says.
void on_each_device(Communicator& ranks, const std::function<void()>& work);

/// Double, `each` values a node: those of `own`, which has this rank's nodes, then those of its ghosts.
Buffer with_ghost_values(const Nodes& nodes, const Buffer& own, std::int64_t each, Stream& stream);

/// Values of nodes that this rank made, `each` a node, go to the ranks that have the nodes (moved_nodes()).
void move_home(const Nodes& made, Buffer& values, std::int64_t each, Stream& stream);

/// This rank's rows and those of the ghosts, whose columns are in no order.
struct GhostRows {
  blocks::BlockRows rows;
  std::shared_ptr<const Nodes> cols;
  HostVector<std::int32_t> number;  ///< in cols, of the columns before
};
/// `nodes` has the rows of `m`, and some ghosts; `m_cols`: its columns. `cols`: those of the result; null: those of `m` and
/// the ghosts that come.
GhostRows with_ghost_rows(const blocks::BlockRows& m, const Nodes& m_cols, const Nodes& nodes, Stream& stream,
                          std::shared_ptr<const Nodes> cols = nullptr);

/// Adds rows at the ranks that have them: own ones first, then those of other ranks in their order.
class RowSums {
 public:
  /// The sums of `part`, which has rows for all nodes of `rows`, ghosts included, and the columns `cols`.
  blocks::BlockRows add(const blocks::BlockRows& part, const Nodes& rows, const Nodes& cols, Stream& stream);
  /// The same for new values; `sums` has the pattern.
  void add_again(const blocks::BlockRows& part, const Nodes& rows, const Nodes& cols, blocks::BlockRows& sums,
                 Stream& stream) const;
  /// The rows and columns of the sums, which are square. After add().
  const std::shared_ptr<const Nodes>& nodes() const { return nodes_; }
  /// Not collective.
  std::int64_t device_bytes() const;

 private:
  Lists come_home(const blocks::BlockRows& part, const Nodes& rows, const Nodes& cols, Stream& stream) const;
  blocks::BlockRows stack(const blocks::BlockRows& part, const Nodes& rows, const Nodes& cols, const Lists& come,
                          Stream& stream) const;

  std::shared_ptr<const Nodes> nodes_;
  blocks::BlockRows pick_;  ///< which rows of the stack a sum consists of
  int longest_ = 0;
};

}  // namespace shardmat::multigrid
