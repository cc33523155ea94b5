// What can be chosen about multigrid.
//
// Threads: values; any thread. Options are the same on all ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/base/host_vector.h"
#include "kernels/base/types.h"

namespace shardmat {

/// Where the nodes of this rank lie, in the order of the source: `dimensions` values a node.
struct NodeCoordinates {
  /// 2 or 3. 12: the place in space, then the three axes of the node's own system, as *TRANSFORM turns one, or as shells
  /// have them, whose two rotations are about the first two axes and whose director is the third.
  int dimensions = 3;
  HostVector<double> of_own;
  /// Which unknown of its node each row is. Empty: in ascending order.
  HostVector<char> unknowns{};

  static constexpr int kWithAxes = 12;
  static bool allows(int dimensions) { return dimensions == 2 || dimensions == 3 || dimensions == kWithAxes; }
  bool has_axes() const { return dimensions == kWithAxes; }
  int in_space() const { return dimensions == 2 ? 2 : 3; }
};

/// Vectors that A maps to almost 0, in place of those that multigrid makes itself; or to 0: SolverOptions::null_vectors.
struct NearNullVectors {
  static constexpr int kMost = 12;
  int count = 1;                ///< 1 to kMost
  HostVector<double> of_own{};  ///< `count` values for each unknown of this rank, in the order of the source
};

/// Nodes in the middle of an edge, as quadratic elements have them: three node numbers of the source each, the node and the
/// ends of its edge. Of this rank's nodes, ascending by the first.
struct MidEdgeNodes {
  HostVector<std::int64_t> of_own;
};

struct MultigridOptions {
  std::shared_ptr<const NodeCoordinates> coordinates;        ///< null: not known
  std::shared_ptr<const NearNullVectors> near_null_vectors;  ///< null: as near_null_space says; else that must be auto
  std::shared_ptr<const MidEdgeNodes> mid_edges;             ///< null: not known
  std::string near_null_space = "auto";                      ///< auto, rigid, constants or adaptive
  double strength = 0.05;                                    ///< theta of strong_couplings()
  /// See multigrid::smoothers(); auto: chebyshev for symmetric matrices, l1_jacobi for others.
  std::string smoother = "auto";
  int smoother_degree = 2;  ///< steps before and after a coarse correction
  /// V (each level once), W (coarse levels twice) or K (twice, with the best combination of both: M is no linear map). auto:
  /// V for symmetric matrices; for others K, or W unless may_vary.
  std::string cycle = "auto";
  bool may_vary = false;           ///< set by the solver: its method takes an M that is no linear map
  std::int64_t coarse_size = 900;  ///< unknowns at which a level is solved exactly
  /// A rank keeps its part of a coarse level if it has so many unknowns of it, or a quarter as many as of the first level
  /// and 1000; 0: in any case.
  std::int64_t rank_size = 20'000;
  int levels = 20;                   ///< at most
  ValueType inner = ValueType::f32;  ///< type of the hierarchy
  /// What new values of the matrix change: keep (the matrices of all levels), smooth (also P, smoothed by the new values) or
  /// anew (everything).
  std::string refresh = "keep";
};

}  // namespace shardmat
