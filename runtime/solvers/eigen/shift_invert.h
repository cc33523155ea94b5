// Eigenvalues of K·x = λ·M·x near a shift: block Lanczos with the factors of K − σ·M.
//
// R. Grimes, J. Lewis and H. Simon, "A shifted block Lanczos algorithm for solving sparse symmetric generalized
// eigenproblems", SIAM J. Matrix Anal. Appl. 15 (1994), with thick restarts and full orthogonalisation. Blocks of eight find
// multiple eigenvalues, and one solve of eight right-hand sides reads the factors once. The signs of pivots count the
// eigenvalues below a shift (Sylvester's law of inertia), so that none is missing.
//
// Threads: as Pencil. Collective.
#pragma once

#include <functional>

#include "runtime/solvers/eigen/eigenpairs.h"
#include "runtime/solvers/eigen/pencil.h"

namespace shardmat::modes {

/// Adds to `result` what it finds. Throws Error(usage) where no factors are to be had.
void shift_invert(Pencil& pencil, const PairOptions& options, const DistributedVector* x0, const EigenMonitor& monitor,
                  const std::function<bool()>& stop, PairVectors& vectors, PairResult& result);

}  // namespace shardmat::modes
