// What accuracy rounding errors allow: ‖ |A|·|x| ‖, which bounds the rounding errors of b − A·x.
//
// The signs of the stored values are taken away for one product and given back after it. So this works for every format on
// every device, whether or not the host rows were kept, and takes one bit a stored value of host memory.
//
// Threads: as Solver. Everything is collective and gives the same result on all ranks.
#pragma once

#include <vector>

#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/product.h"

namespace shardmat {

class MeanRemover;

/// A residual of at most this times ‖ |A|·|x| ‖ cannot be told from 0: two units in the last place, 4.4e-16 in f64 and
/// 2.4e-7 in f32.
double attainable_share(ValueType type);

/// ‖ |A|·|x| ‖₂ of each column. Overwrites the product's x(). Waits. REQUIRES: x in row layout of a square matrix, and no
/// other product of the matrix runs meanwhile. If the device fails, the values of the matrix are undefined.
std::vector<double> norms_of_magnitudes(const Product& product, const DistributedVector& x, Stream& stream);

/// ‖b − A·x‖₂ of each column; `project`, if any, is called with b − A·x first. Overwrites the product's x(). Waits.
std::vector<double> norms_of_residual(const Product& product, const DistributedVector& b, const DistributedVector& x,
                                      const MeanRemover* project, Stream& stream);

}  // namespace shardmat
