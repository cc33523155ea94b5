// M-orthonormal bases of blocks of vectors, and small eigenproblems that all ranks solve alike.
//
// Orthogonalisation by Gram matrices (A. Stathopoulos and K. Wu, "A block orthogonalization procedure with constant
// synchronization requirements", SIAM J. Sci. Comput. 23, 2002: SVQB): one sum over the ranks a pass, and directions that
// others span within rounding are dropped, so that clusters and rigid-body modes do no harm.
//
// Threads: as Pencil. Collective; the same on all ranks.
#pragma once

#include <cstdint>

#include "comm/communicator.h"
#include "runtime/solvers/eigen/panels.h"
#include "runtime/solvers/eigen/pencil.h"
#include "runtime/solvers/loop/symmetric_eigen.h"

namespace shardmat::modes {

/// gram() over all ranks.
Small gram_of_ranks(const Panels& a, const Panels& b, std::int64_t rows, Communicator& ranks);

/// Of a symmetric matrix; rank 0 decomposes it: other instruction sets on other hosts could round otherwise.
SymmetricEigen eigen_of_ranks(const Small& matrix, std::int64_t n, Communicator& ranks);

/// The first `count` eigenvectors as columns of a matrix of rows × columns, which are 0 elsewhere.
Small first_vectors(const SymmetricEigen& eigen, std::int64_t count, std::int64_t rows, std::int64_t columns);

/// Combinations c (count × kept) that make vectors with the Gram matrix `g` (count × count) orthonormal; those that others
/// span within `rounding` are left out.
struct Orthonormal {
  Small c;
  double worst = 1;  ///< how much the combinations enlarge rounding errors
};
Orthonormal orthonormal(const Small& g, std::int64_t count, double rounding, Communicator& ranks);

/// Makes the first `count` vectors of `w` M-orthonormal, and M-orthogonal to `q`, which is M-orthonormal.
/// `mw` becomes M·w. Those that are left come first, the other places become 0. Returns how many are left. If `factors` is
/// given: w before = q·(its first rows) + w after·(its last rows, one for each place). Throws Error(input) on all ranks if
/// xᵀ·M·x is below 0 for one of the vectors.
std::int64_t orthonormalise(Pencil& pencil, const Panels& w, const Panels& mw, std::int64_t count, const Panels& q,
                            Small* factors = nullptr);

}  // namespace shardmat::modes
