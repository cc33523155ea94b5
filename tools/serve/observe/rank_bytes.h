// Bytes that products move, and that the ranks hold.
//
// Threads: the thread of the event loop.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tools/serve/ranks/service.h"

namespace shardmat::serve {

/// The least bytes that the product moved, on all ranks. REQUIRES: the matrix is loaded, the product is no slice.
double moved_bytes(const Matrix& matrix, const FinishedProduct& product);

/// Bytes on one rank.
struct HeldBytes {
  std::int64_t matrices = 0, solvers = 0, vectors = 0;
};
/// Of the matrices and vectors that these rights see.
HeldBytes held_bytes(const Service& service, std::size_t rank, const Rights& rights);

}  // namespace shardmat::serve
