// Whether factors are those of a singular matrix: then rounding errors stand where a pivot should be 0.
//
// Threads: as Solver. Collective; the same on all ranks.
#pragma once

#include "runtime/matrix/product.h"
#include "runtime/solvers/loop/attainable.h"
#include "runtime/solvers/loop/preconditioner.h"

namespace shardmat::direct {

/// What factors say of a matrix: it is regular, or singular up to rounding; or rounding x in its type may leave a residual
/// of a hundredth of b, as of a singular matrix whose values were rounded to f32, and of thin structures.
enum class Singular { no, perhaps, yes };

/// M has factors. `yes` if they have more pivots of 0 than `known`, or if |A|·|M·r| of a random r is 1e14 times a row's
/// |A|·1 or more in some row: some 1e16 where A is singular up to rounding, 1e9 for a slender beam. r has the magnitude
/// |A|·1 in each row, so that factors of rows and columns change nothing; it is taken without the null space that M removes.
/// Where the rows of A are not in host memory, norms are compared, and r has entries of 1. Takes a solve; overwrites the
/// product's x().
Singular looks_singular(const Preconditioner& m, std::int64_t known, const Product& product, const RoundingFloor& floor,
                        Stream& stream);

}  // namespace shardmat::direct
