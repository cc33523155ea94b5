// Vectors of random entries that depend on the original row alone: the same for any number of ranks. On GPUs they depend on
// the place of the row instead, for where rows go is not known there.
#pragma once

#include <cstdint>

#include "runtime/matrix/distributed_vector.h"

namespace shardmat {

enum class Entries {
  signs,      ///< ±1
  fractions,  ///< ±[½, 1)
};

/// All columns alike, but for `times`: each entry is multiplied by the same one of that vector, which has this one's map and
/// type; null: by 1.
void fill_random(DistributedVector& vector, std::uint64_t seed, Entries entries, Stream& stream,
                 const DistributedVector* times = nullptr);

}  // namespace shardmat
