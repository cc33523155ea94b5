// What a level of multigrid on GPUs keeps of its way to the next one.
//
// Threads: as Hierarchy.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "kernels/blocks/setup.h"
#include "runtime/solvers/multigrid/device_parts.h"
#include "runtime/solvers/multigrid/node_rows.h"

namespace shardmat::multigrid {

/// Modes of a level, and why these.
struct DeviceModes {
  int count = 0;
  Buffer value;
  std::string why;
};

/// A square matrix: this rank's rows, and the nodes of all.
struct DeviceMatrix {
  blocks::BlockRows rows;
  std::shared_ptr<const Nodes> nodes;
};

class DeviceCoarsening {
 public:
  /// T, with the modes of the coarse nodes. The coarse nodes lie as on_fewer_ranks() says for `least` of them. Collective.
  DeviceCoarsening(const DeviceMatrix& a, blocks::Aggregates aggregates, const DeviceModes& modes, std::int64_t least,
                   Stream& stream);

  /// P for these values of A. Collective.
  void smooth(const DeviceMatrix& a, const Buffer& inverse, double omega, Stream& stream);
  /// The next level's matrix; nothing if it has more than `most` blocks. `diagonal`: diagonal_places(a). Collective.
  std::optional<DeviceMatrix> multiply(const DeviceMatrix& a, const Buffer& diagonal, double most, Stream& stream);
  /// The same for new values. Collective.
  DeviceMatrix multiply_again(const DeviceMatrix& a, const Buffer& diagonal, Stream& stream);

  Buffer take_coarse_modes() { return std::move(coarse_modes_); }

  const blocks::BlockRows& p() const { return p_; }
  const std::shared_ptr<const Nodes>& p_cols() const { return p_cols_; }
  /// With rows for all columns of P, ghosts included.
  const blocks::BlockRows& transposed_p() const { return transposed_p_; }
  /// P in host memory, copied once. Not collective.
  const NodeRows& copy_of_p(Stream& stream) const;
  std::int64_t device_bytes() const;

 private:
  bool is_alone() const { return fine_->ranks().size() == 1; }
  const blocks::BlockRows& all_t() const { return is_alone() ? t_ : all_t_.rows; }
  const blocks::BlockRows& all_p() const { return is_alone() ? p_ : all_p_.rows; }
  const Nodes& all_cols() const { return is_alone() ? *p_cols_ : *all_p_.cols; }
  /// The values of `part`, whose pattern is that of part_. Not collective.
  void fill_part(const blocks::BlockRows& a, blocks::BlockRows& part, Stream& stream);
  void mend(const DeviceMatrix& a, const Buffer& diagonal, blocks::BlockRows& next, Stream& stream) const;

  std::shared_ptr<const Nodes> fine_;  ///< the rows of T and P
  std::shared_ptr<const Nodes> made_;  ///< the columns of T
  std::shared_ptr<const Nodes> p_cols_;
  blocks::Aggregates aggregates_;
  blocks::BlockRows t_, p_, transposed_p_;
  Buffer block_of_;         ///< of transposed_p_
  Buffer coarse_modes_;     ///< until they are taken
  blocks::BlockRows ap_;    ///< the pattern of A·P
  blocks::BlockRows part_;  ///< the pattern of this rank's part of the next level's matrix
  int longest_p_ = 0, longest_ap_ = 0, longest_part_ = 0;
  // Of several ranks:
  GhostRows all_t_, all_p_;
  Buffer column_of_node_;  ///< of T in P's columns
  RowSums sums_;
  blocks::BlockRows next_;  ///< the pattern of the next level's matrix
  mutable std::optional<NodeRows> copy_of_p_;
};

}  // namespace shardmat::multigrid
