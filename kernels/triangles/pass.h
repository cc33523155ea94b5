// A pass over rows of a triangle on a GPU: x = b − T·x. Internal to FactorSolve.
//
// Threads: as Plan.
#pragma once

#include <cstdint>

#include "kernels/base/device.h"

namespace shardmat::triangles {

/// Vectors inside have the entries of one right-hand side after those of another, blocks of rows by their numbers.
template <class V>
struct Pass {
  // The triangle (slices.h), and which of its slices are taken.
  const std::int64_t* start;
  const std::int32_t *row, *column;
  const V* value;
  int team;
  std::int64_t first, end;
  std::int64_t count;   ///< rows
  int columns;          ///< right-hand sides
  bool couples = true;  ///< false: x = b

  // b is that of the program's vector, or of one inside; times D⁻¹, if that is given.
  const void* r = nullptr;
  const V* b = nullptr;
  const V* inverse = nullptr;
  // x goes to one of either kind, or to both.
  const V* from = nullptr;  ///< the x that is read
  V* to = nullptr;
  void* z = nullptr;
  const std::int32_t* place = nullptr;  ///< of the unknowns in r and z
  bool f64 = true;                      ///< r and z; else f32

  // Where rows wait: `from` is `to`.
  V* next = nullptr;                ///< entries of the rows that become such as are not there yet
  unsigned* ticket = nullptr;       ///< 0 at first: thread blocks take slices in their order
  unsigned* next_ticket = nullptr;  ///< becomes 0
};

/// Instances for f32 and f64. `size`: of the blocks.
template <class V>
void run_pass(const Pass<V>& pass, int size, bool waits, Stream& stream);

}  // namespace shardmat::triangles
