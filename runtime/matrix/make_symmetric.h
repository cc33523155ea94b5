// A distributed matrix that equals its transpose, or does so within rounding: then it becomes equal bit by bit.
#pragma once

#include "comm/communicator.h"
#include "runtime/matrix/load_part.h"

namespace shardmat {

/// Nothing changes if a_ij and a_ji have the same bits everywhere: a 64-bit hash of all pairs tells, so that a difference
/// goes unseen with a probability of 2^-64. Else ranks exchange mirrored entries, and both become their mean if no
/// relative_difference() is above symmetry_tolerance(`type`); an entry that is not stored is 0, and is stored then. Sets
/// symmetry_difference, averaged, nnz and value_starts of the part.
///
/// Throws Error(usage) unless the matrix is square, and Error(input) with the pair that differs most, in original numbers
/// from 0. Takes 16 bytes of host memory a nonzero, and 64 bytes for each entry in a column of another rank. Collective; the
/// same error on all ranks.
void make_symmetric(LoadedPart& part, ValueType type, Communicator& communicator);

}  // namespace shardmat
