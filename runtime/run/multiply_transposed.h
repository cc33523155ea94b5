// `shardmat multiply --transpose` as one call: y = alpha·Aᵀ·x + beta·y from the rows that are stored once.
//
// Threads: one thread of each rank; multiply_transposed() is collective.
#pragma once

#include "runtime/run/multiply.h"

namespace shardmat {

/// As multiply(), for x with the rows of A and y with its columns. Also times products with A, so that the report tells how
/// much longer those with Aᵀ take. The check is in full: each rank reads its rows again, and adds row by row in f64.
MultiplyReport multiply_transposed(Context& context, const MultiplyOptions& options);

}  // namespace shardmat
