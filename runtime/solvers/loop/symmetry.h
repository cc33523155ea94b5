// Whether a matrix on the devices is symmetric up to rounding errors, seen by products with random vectors.
#pragma once

#include <string_view>

#include "runtime/matrix/product.h"

namespace shardmat {

struct SymmetryProbe {
  double difference = 0;  ///< the largest |xᵀAy − yᵀAx| of the pairs
  double scale = 0;       ///< Σ|a_ij|; for these vectors |x|ᵀ|A||y| + |y|ᵀ|A||x| is between one and two times as much
  bool symmetric = true;  ///< difference ≤ tolerance·scale
};

/// Three pairs of random vectors with entries ±1 and ±[½, 1). The tolerance is symmetry_tolerance(), for the
/// matrix as a whole: symmetric storage asks for it pair by pair. REQUIRES: a
/// square matrix of which all entries are stored. Collective.
SymmetryProbe probe_symmetry(const Product& product, Stream& stream);

/// Σ|a_ij| over the stored entries of all ranks: of symmetric storage those of one triangle. Collective; the same on all
/// ranks.
double sum_of_magnitudes(const Product& product, Stream& stream);

}  // namespace shardmat
