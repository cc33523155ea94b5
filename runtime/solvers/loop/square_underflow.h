// When the numbers of a vector are too small to form their squares.
#pragma once

#include <span>

#include "runtime/matrix/distributed_vector.h"

namespace shardmat {

class Product;

/// A sum of squares below this has lost digits, or the squares of a residual 1e-16 (f32: 1e-6) times as long would lose
/// them. In f32 the entries themselves lose digits below 1e-38; their squares are summed in f64.
constexpr double smallest_square(ValueType type) { return type == ValueType::f32 ? 1e-64 : 1e-260; }

/// True if a column has entries that are not 0, and its sum of squares is below smallest_square(). `squares`: of each
/// column, the same on all ranks; or of what a preconditioner made of it. Collective; the same result and error on all
/// ranks.
bool squares_underflow(const DistributedVector& vector, std::span<const double> squares, const Product& product,
                       Stream& stream);

}  // namespace shardmat
