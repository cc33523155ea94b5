// Whether factors are those of a singular matrix: then rounding errors stand where a pivot should be 0.
//
// Threads: as Solver. Collective; the same on all ranks.
#pragma once

#include "runtime/matrix/product.h"
#include "runtime/solvers/loop/attainable.h"
#include "runtime/solvers/loop/preconditioner.h"

namespace shardmat::direct {

/// True if M, which has factors, found more pivots of 0 than `known`, or if ‖ |A|·|M·r| ‖ of a random r is 1e14 ‖r‖ or more:
/// some 1e16 where A is singular up to rounding, 1e9 for a slender beam. `r` is taken without the null space that M removes.
/// Takes a solve; overwrites the product's x().
bool looks_singular(const Preconditioner& m, std::int64_t known, const Product& product, const RoundingFloor& floor,
                    Stream& stream);

}  // namespace shardmat::direct
