// Measures the constants of the performance model that describe one device.
//
// Threads: one thread at a time uses a context.
#pragma once

#include "runtime/context/context.h"
#include "runtime/matrix/matrix_options.h"
#include "runtime/source/matrix_source.h"
#include "runtime/timing/performance_model.h"

namespace shardmat {

/// Cuts the matrix into 2, 4, 16 and 64 parts by load.method, and times the product of one part of each: of the part that
/// moves most bytes, with the columns that its rank would have. A point of the result has the nonzeros of the largest part.
/// `seconds` is the time of a product with all rows. `load` names the kernel and policy. REQUIRES: a context of one rank.
ProductCost measure_product_cost(Context& context, const MatrixSource& source, LoadOptions load, double seconds);

/// Seconds to replay a recorded step that does almost nothing.
double measure_launch_latency(Context& context);
/// Seconds that a second, concurrent stream adds to a recorded step.
double measure_split_latency(Context& context);

}  // namespace shardmat
