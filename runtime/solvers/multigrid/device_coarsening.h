// What a level of multigrid on a GPU keeps of its way to the next one.
//
// Threads: as Hierarchy.
#pragma once

#include <optional>
#include <string>

#include "kernels/blocks/setup.h"
#include "runtime/solvers/multigrid/node_rows.h"

namespace shardmat::multigrid {

/// Modes of a level, and why these.
struct DeviceModes {
  int count = 0;
  Buffer value;
  std::string why;
};

struct DeviceCoarsening {
  blocks::BlockRows t, p, transposed_p;
  Buffer block_of;  ///< of transposed_p
  blocks::Aggregates aggregates;
  blocks::BlockRows ap;    ///< the pattern of A·P
  blocks::BlockRows next;  ///< the pattern of the next level's matrix
  int longest_p = 0, longest_ap = 0, longest_next = 0;
  mutable std::optional<NodeRows> copy_of_p;  ///< in host memory, once somebody asked for it

  /// `to`, which has the pattern of the next level, becomes Pᵀ·A·P. `diagonal`: diagonal_places(a).
  void multiply(const blocks::BlockRows& a, const Buffer& diagonal, blocks::BlockRows& to, Stream& stream);
  std::int64_t device_bytes() const;
};

}  // namespace shardmat::multigrid
