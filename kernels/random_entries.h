// Random entries of vectors on a GPU, the same as partition/generators/counter_random.h makes on the host.
//
// Threads: as Stream.
#pragma once

#include <cstdint>

#include "kernels/base/device.h"
#include "kernels/base/types.h"

namespace shardmat {

/// Row i of `count` rows gets `columns` times the number of item first + i of the generator with this key: ±[½, 1) if
/// `fractions`, else ±1. It is multiplied by the same entry of `times`; null: by 1. In stream order. REQUIRES: a GPU; f32 or
/// f64.
void fill_random_entries(ValueType type, std::uint64_t key, std::int64_t first, std::int64_t count, std::int64_t columns,
                         bool fractions, const void* times, void* to, Stream& stream);

}  // namespace shardmat
