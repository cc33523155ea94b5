// The kernels for many right-hand sides that work on CSR.
#pragma once

#include <memory>
#include <vector>

#include "kernels/spmm.h"

namespace shardmat {

std::vector<Policy> csr_spmm_host_policies(const RowStatistics& rows, const RightHandSides& rhs);
bool csr_spmm_host_supports(const Storage& storage, const RightHandSides& rhs);
std::unique_ptr<SpmmPlan> make_csr_spmm_host(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                             const Policy& policy, Stream& stream);

}  // namespace shardmat
