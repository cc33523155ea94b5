// Small dense blocks of incomplete factors, row-major, of 1 to 6 unknowns.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "kernels/host/lanes.h"

namespace shardmat::incomplete {

inline constexpr int kMostUnknowns = 6;       ///< of a block
inline constexpr double kLeastPivot = 1e-12;  ///< of the sum of the magnitudes in the row: smaller ones count as 0

/// out = a·b.
SHARDMAT_INLINE void multiply_blocks(const double* a, const double* b, double* out, int s) {
  for (int r = 0; r < s; ++r)
    for (int c = 0; c < s; ++c) {
      double sum = 0;
      for (int k = 0; k < s; ++k) sum += a[r * s + k] * b[k * s + c];
      out[r * s + c] = sum;
    }
}

/// out −= a·b.
SHARDMAT_INLINE void subtract_product(const double* a, const double* b, double* out, int s) {
  for (int r = 0; r < s; ++r)
    for (int k = 0; k < s; ++k)
      for (int c = 0; c < s; ++c) out[r * s + c] -= a[r * s + k] * b[k * s + c];
}

/// A block beside another one, which begins as the identity.
using BlockPair = double[kMostUnknowns][2 * kMostUnknowns];

/// A step of Gauss and Jordan: row p gets a pivot of 1, and the others a 0 in its column.
SHARDMAT_INLINE void eliminate_column(BlockPair& m, int p, int s) {
  const double factor = 1 / m[p][p];
  for (int c = p; c < 2 * s; ++c) m[p][c] *= factor;
  for (int r = 0; r < s; ++r)
    if (const double times = m[r][p]; r != p)
      for (int c = p; c < 2 * s; ++c) m[r][c] -= times * m[p][c];
}

/// Inverts a block, with the largest pivot of each column. False: a pivot is at most `least`.
SHARDMAT_INLINE bool invert_pivot(const double* a, double* inverse, int s, double least) {
  BlockPair m;
  for (int r = 0; r < s; ++r)
    for (int c = 0; c < s; ++c) m[r][c] = a[r * s + c], m[r][s + c] = r == c ? 1 : 0;
  for (int p = 0; p < s; ++p) {
    int largest = p;
    for (int r = p + 1; r < s; ++r)
      if (std::abs(m[r][p]) > std::abs(m[largest][p])) largest = r;
    if (!(std::abs(m[largest][p]) > least) || !std::isfinite(m[largest][p])) return false;
    if (largest != p) std::swap_ranges(m[p], m[p] + 2 * s, m[largest]);
    eliminate_column(m, p, s);
  }
  for (int r = 0; r < s; ++r)
    for (int c = 0; c < s; ++c) inverse[r * s + c] = m[r][s + c];
  return true;
}

/// Inverts a symmetric block by pivots on its diagonal; the inverse is symmetric, bit by bit. False: it is not positive
/// definite by at least `least`.
SHARDMAT_INLINE bool invert_definite(const double* a, double* inverse, int s, double least) {
  BlockPair m;
  for (int r = 0; r < s; ++r)
    for (int c = 0; c < s; ++c) m[r][c] = (a[r * s + c] + a[c * s + r]) / 2, m[r][s + c] = r == c ? 1 : 0;
  for (int p = 0; p < s; ++p) {
    if (!(m[p][p] > least) || !std::isfinite(m[p][p])) return false;
    eliminate_column(m, p, s);
  }
  for (int r = 0; r < s; ++r)
    for (int c = 0; c < s; ++c) inverse[r * s + c] = (m[r][s + c] + m[c][s + r]) / 2;
  return true;
}

}  // namespace shardmat::incomplete
