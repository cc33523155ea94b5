// The host kernel for several right-hand sides on blocked CSR.
#pragma once

#include <memory>

#include "kernels/spmm_plan.h"

namespace shardmat {

std::unique_ptr<SpmmPlan> make_bcsr_spmm_host(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                              const Policy& policy, Stream& stream);

}  // namespace shardmat
