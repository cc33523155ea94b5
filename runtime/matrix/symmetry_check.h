// Whether a distributed matrix is symmetric, bit by bit.
#pragma once

#include "comm/communicator.h"
#include "runtime/matrix/load_part.h"

namespace shardmat {

/// Throws Error(usage) unless the matrix is square, and Error(input) with the first pair of entries a_ij, a_ji that differ,
/// in original numbers from 0. Compares a 64-bit hash of all pairs, so a difference goes unseen with a probability of 2^-64.
/// Collective; the same error on all ranks.
void require_symmetric(const LoadedPart& part, Communicator& communicator);

}  // namespace shardmat
