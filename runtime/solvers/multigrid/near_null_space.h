// Vectors that a matrix maps to almost 0, and that coarse levels must therefore represent.
//
// Threads: one thread of each rank. Collective functions say so.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "runtime/solvers/loop/preconditioner_options.h"
#include "runtime/solvers/multigrid/node_rows.h"
#include "runtime/solvers/multigrid/prolong.h"

namespace shardmat::multigrid {

struct NearNullSpace {
  Modes modes;
  std::string why;  ///< for reports: "6 rigid-body modes", "3 constants: no coordinates are given"
};

/// Which vectors are taken, as far as the values of the matrix do not matter.
struct WantedModes {
  enum Kind { given, rigid, constants } kind;
  std::string why;  ///< NearNullSpace::why
};
/// For a matrix of nodes with `size` unknowns. Collective; errors as near_null_space().
WantedModes wanted_modes(const Nodes& nodes, int size, const MultigridOptions& options);

/// A mode is in the near null space of a row if A maps it to at most this share of |A|·|v| there.
inline constexpr double kSmallInRow = 1e-6;
inline constexpr std::int64_t kSampledNodes = 2000;  ///< of a rank, to see whether modes are
/// Why constants are taken in place of rigid-body modes, which only this share of the coupled rows map to almost 0; nothing
/// if the share is large enough.
std::optional<std::string> unfit_rigid_modes(double share, int size);

/// About what rigid bodies turn, and how far they reach from there along an axis. Collective.
struct Centre {
  std::array<double, 3> at{};
  double reach = 0;
};
Centre centre_of(const NodeCoordinates& coordinates, const Nodes& nodes);

/// The vectors that are given; else by the name. auto: rigid-body modes if coordinates are given, a node has as many
/// unknowns as coordinates (or with rotations 6 in space, 5 where nodes have axes, 3 in the plane), and A maps each mode to
/// almost 0 away from what holds the body; of nodes that have axes, displacements are along these or the global ones,
/// whatever fits; else a constant for each unknown of a node. adaptive: the constants, to which adaptive.h adds. Entries of
/// unknowns that are coupled with nothing (known values) are 0. Collective. Throws Error(usage) for "rigid" without
/// coordinates, for coordinates of another number of nodes, for vectors of another number of unknowns, and for unknown
/// names; Error(input) for NaN and infinity, and for a given vector of zeros.
NearNullSpace near_null_space(const NodeRows& a, const MultigridOptions& options);

}  // namespace shardmat::multigrid
