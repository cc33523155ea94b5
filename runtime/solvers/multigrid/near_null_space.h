// Vectors that a matrix maps to almost 0, and that coarse levels must therefore represent.
//
// Threads: one thread of each rank. Collective functions say so.
#pragma once

#include <string>

#include "runtime/solvers/loop/multigrid_options.h"
#include "runtime/solvers/multigrid/node_rows.h"
#include "runtime/solvers/multigrid/prolong.h"

namespace shardmat::multigrid {

struct NearNullSpace {
  Modes modes;
  std::string why;  ///< for reports: "6 rigid-body modes", "3 constants: no coordinates are given"
};

/// The vectors that are given; else by the name. auto: rigid-body modes if coordinates are given, a node has as many
/// unknowns as coordinates (or 6 in space, 3 in the plane: with rotations), and A maps each mode to almost 0 away from what
/// holds the body; else a constant for each unknown of a node. adaptive: the constants, to which adaptive.h adds. Entries of
/// unknowns that are coupled with nothing (known values) are 0. Collective. Throws Error(usage) for "rigid" without
/// coordinates, for coordinates of another number of nodes, for vectors of another number of unknowns, and for unknown
/// names; Error(input) for NaN and infinity, and for a given vector of zeros.
NearNullSpace near_null_space(const NodeRows& a, const MultigridOptions& options);

}  // namespace shardmat::multigrid
