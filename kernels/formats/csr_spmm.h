// The kernels for many right-hand sides that work on CSR.
#pragma once

#include <memory>

#include "kernels/spmm.h"

namespace shardmat {

std::unique_ptr<SpmmPlan> make_csr_spmm_host(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                             const Policy& policy, Stream& stream);

}  // namespace shardmat
