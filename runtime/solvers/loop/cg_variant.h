// The choice between the forms of conjugate gradients.
//
// Threads: as Solver.
#pragma once

#include "runtime/solvers/loop/solver_options.h"

namespace shardmat {

struct MethodInputs;

/// Thread blocks of the launch that does all that follows the product of an iteration; 0: these inputs need passes.
int cg_blocks_for(const MethodInputs& inputs);

/// The variant for these ranks, rows and columns; `asked` unless it is automatic. A preconditioner of the program, or one
/// that is no linear map: flexible. Else one rank: classic. Several: classic if kernels can sum over the ranks in the launch
/// that updates the vectors. Otherwise single_reduction if a sum over the ranks takes longer than reading the further
/// vectors. Both are measured, on the slowest rank, in some milliseconds; `by_rule`: nothing is measured, and the bytes of a
/// vector decide. Overwrites the product's x(). Collective; the same on all ranks.
CgChoice choose_cg_variant(const MethodInputs& inputs, CgVariant asked, bool by_rule);

}  // namespace shardmat
