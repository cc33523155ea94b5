// The smallest eigenvalues of K·x = λ·M·x by LOBPCG with multigrid of K.
//
// A. Knyazev, "Toward the optimal preconditioned eigensolver", SIAM J. Sci. Comput. 23 (2001); U. Hetmaniuk and R. Lehoucq,
// "Basis selection in LOBPCG", J. Comput. Phys. 218 (2006); J. Duersch et al., "A robust and efficient implementation of
// LOBPCG", SIAM J. Sci. Comput. 40 (2018). X, P and W are M-orthonormal together, so that Rayleigh-Ritz is a standard
// problem. Pairs that converged stay in the block, but need no new directions (soft locking).
//
// Threads: as Pencil. Collective.
#pragma once

#include <functional>
#include <memory>

#include "runtime/solvers/eigen/eigenpairs.h"
#include "runtime/solvers/eigen/pencil.h"
#include "runtime/solvers/loop/preconditioner.h"

namespace shardmat::modes {

/// A preconditioner for kPanel columns, symmetric and positive; `known`: what K maps to 0, or null. `exact`: in f64.
/// Collective.
using MakeInverse = std::function<std::unique_ptr<Preconditioner>(std::shared_ptr<const NearNullVectors> known, bool exact)>;

/// Adds to `result` what it finds. If K has zero modes that the preconditioner does not know, it enlarges them until
/// rounding in f32 leaves nothing else: it is made anew in f64, and with these modes as soon as they are found.
void lobpcg(Pencil& pencil, const MakeInverse& make_inverse, const PairOptions& options, const DistributedVector* x0,
            const EigenMonitor& monitor, const std::function<bool()>& stop, PairVectors& vectors, PairResult& result);

/// Looks at the pairs anew: values, residuals, which are 0, and how orthogonal the vectors are. `pairs` vectors of `x`;
/// values by Rayleigh quotients.
void measure_pairs(Pencil& pencil, Block& x, std::int64_t pairs, double tolerance, PairResult& result);

}  // namespace shardmat::modes
