// The constants of the performance model that a device can tell.
#pragma once

#include "runtime/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/source/matrix_source.h"
#include "runtime/timing/performance_model.h"

namespace shardmat {

/// On a context of one rank: `seconds` are those of a product with all rows of the source, and its first rows that hold
/// half, a fourth, a sixteenth and a sixty-fourth of the nonzeros are timed now. `load` names the kernel and policy.
ProductCost measure_product_cost(Context& context, const MatrixSource& source, LoadOptions load, double seconds);

/// Seconds of a recorded step with next to nothing in it.
double measure_launch_latency(Context& context);
/// Seconds that a second stream beside the first adds to a recorded step.
double measure_split_latency(Context& context);

}  // namespace shardmat
