// `shardmat multiply --rhs k`: Y = alpha·A·X + beta·Y with k columns on one rank; load, multiply, verify, iterate, write,
// report.
#pragma once

#include <cstdint>

#include "runtime/multiply.h"

namespace shardmat {

/// X and Y are row-major. What options name as x, y0 and output are matrices of `right_hand_sides` columns. Of options.load
/// type and the plan's kernel, policy, measure and reproducible count; kernels are those of kernels/spmm.h. Verification
/// checks every entry. Throws Error(usage) for several ranks, power iteration, sampled verification and tuning; all else as
/// multiply().
MultiplyReport multiply_many(Communicator& communicator, const MultiplyOptions& options, std::int64_t right_hand_sides);

}  // namespace shardmat
