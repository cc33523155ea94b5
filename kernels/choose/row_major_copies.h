// Column-major operands for plans of the host, whose kernels take row-major ones.
#pragma once

#include <memory>

#include "kernels/spmm_plan.h"

namespace shardmat {

/// A plan for X and Y in the orders of `rhs`, which multiplies with `rows` in row-major copies. REQUIRES: `rows` is a plan
/// of the host for as many columns of row-major X and Y.
std::unique_ptr<SpmmPlan> with_row_major_copies(std::unique_ptr<SpmmPlan> rows, const RightHandSides& rhs);

}  // namespace shardmat
