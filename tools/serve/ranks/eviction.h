// Which matrices leave the ranks so that another one has room.
//
// Threads: any thread; there is no shared state.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/serve/ranks/matrix.h"

namespace shardmat::serve {

/// Those that were used least recently, so many that every rank gets the bytes that it is missing. Nothing if all of them
/// together would not do. REQUIRES: the matrices are loaded; `missing` has a number for each rank.
std::vector<Matrix*> to_evict(std::vector<Matrix*> matrices, const std::vector<std::int64_t>& missing);

/// What all of them have on a rank.
std::int64_t bytes_on(const std::vector<Matrix*>& matrices, std::size_t rank);

}  // namespace shardmat::serve
