// What is known of the nodes of a matrix beside its rows: where they lie, which are in the middle of an edge, what the rows
// are called. Multigrid wants to know it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/base/host_vector.h"
#include "partition/source/unknowns.h"

namespace shardmat {

/// A node in the middle of an edge, as quadratic elements have them, and the two ends of this edge, the smaller first.
using MidEdge = std::array<std::int64_t, 3>;

/// Everything is in the original order of the rows, whatever order they are stored in. The calls may read a file each time.
class NodeFacts {
 public:
  virtual ~NodeFacts() = default;

  static constexpr int kDimensions = 3;  ///< coordinates of a node; the last is 0 in the plane

  /// Where the nodes [begin, end) lie, three values each; a node has rows / placed_nodes() rows. Empty: not known.
  virtual HostVector<double> coordinates([[maybe_unused]] std::int64_t begin, [[maybe_unused]] std::int64_t end) const {
    return {};
  }
  /// The axes of these nodes' own systems, nine values each, axis by axis; empty: the global ones, or not known.
  virtual HostVector<double> axes([[maybe_unused]] std::int64_t begin, [[maybe_unused]] std::int64_t end) const {
    return {};
  }
  static constexpr int kAxes = 9;
  virtual bool has_axes() const { return false; }
  /// Nodes that coordinates() knows; 0: none.
  virtual std::int64_t placed_nodes() const { return 0; }

  /// The nodes in the middle of edges, ascending. Numbers of nodes as in coordinates(). Empty: there are none, or they are
  /// not known.
  virtual std::vector<MidEdge> mid_edges() const { return {}; }

  /// Vectors that the matrix maps to almost 0; 0: none are known. At most kMostVectors.
  virtual int near_null_count() const { return 0; }
  /// Their entries in the rows [begin, end), row by row.
  virtual HostVector<double> near_null_vectors([[maybe_unused]] std::int64_t begin,
                                               [[maybe_unused]] std::int64_t end) const {
    return {};
  }
  static constexpr int kMostVectors = 12;

  /// True if any of this is known. Reads nothing.
  virtual bool knows_nodes() const { return placed_nodes() > 0 || near_null_count() > 0; }

  /// The node and the degree of freedom of each row; null if they are not known. From a source made by make_kept_source(),
  /// only rank 0 gets them.
  virtual std::shared_ptr<const UnknownList> unknowns() const { return nullptr; }
};

/// Three axes of length 1 at right angles, nine numbers, up to what a few printed digits leave.
bool are_axes(const double* numbers);

}  // namespace shardmat
