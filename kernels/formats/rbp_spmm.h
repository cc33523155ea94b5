// The kernels for several right-hand sides on row block packing (rbp.h): the columns of a run are read once for all of them.
#pragma once

#include <memory>
#include <vector>

#include "kernels/spmm_plan.h"

namespace shardmat {

std::unique_ptr<SpmmPlan> make_rbp_csr_spmm_host(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                                 const Policy& policy, Stream& stream);
/// For rbp_ell and rbp_ell_r.
std::unique_ptr<SpmmPlan> make_rbp_ell_spmm_host(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                                 const Policy& policy, Stream& stream);

std::vector<Policy> rbp_spmm_policies(const Storage& storage, const RightHandSides& rhs);
std::unique_ptr<SpmmPlan> make_rbp_csr_spmm(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                            const Policy& policy, Stream& stream);
/// For rbp_ell and rbp_ell_r.
std::unique_ptr<SpmmPlan> make_rbp_ell_spmm(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                            const Policy& policy, Stream& stream);

}  // namespace shardmat
