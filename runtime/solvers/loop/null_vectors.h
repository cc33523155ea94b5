// A basis of the null space of a matrix.
//
// Threads: values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/host_vector.h"

namespace shardmat {

/// A part of the system that can move.
struct FreeBody {
  std::int64_t first_node = 0, nodes = 0;  ///< the least number of its nodes in the order of the source; how many it has
  int motions = 0;
};

struct NullVectors {
  static constexpr int kMost = 24, kMostBodies = 10'000;

  int count = 0;
  /// `count` values for each unknown of this rank, in the order of the source. Over all ranks the vectors are orthogonal,
  /// and of the norm √n, n being the rows of the matrix.
  HostVector<double> of_own;
  std::vector<FreeBody> bodies;  ///< empty: not looked at
  bool constants = false;        ///< the motions are constants: a node has one unknown
  std::string other{};           ///< what they are, if no motions
  bool too_many = false;         ///< more than these numbers; then there are no vectors

  /// "6 motions of a body that nothing holds: 8,000 nodes from node 0 on".
  std::string describe() const;
};

}  // namespace shardmat
