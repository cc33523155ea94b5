// The kernels for several right-hand sides on CSR.
#pragma once

#include <memory>
#include <vector>

#include "kernels/spmm_plan.h"

namespace shardmat {

std::unique_ptr<SpmmPlan> make_csr_spmm_host(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                             const Policy& policy, Stream& stream);

std::vector<Policy> csr_balanced_spmm_policies(const Storage& storage, const RightHandSides& rhs);
bool csr_balanced_spmm_in_order(ValueType type, const Policy& layout, const Policy& policy);
std::unique_ptr<SpmmPlan> make_csr_balanced_spmm(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                                 const Policy& policy, Stream& stream);

std::vector<Policy> csr_segmented_spmm_policies(const Storage& storage, const RightHandSides& rhs);
bool csr_segmented_spmm_supports(const Storage& storage, const RightHandSides& rhs);
bool csr_segmented_spmm_in_order(ValueType type, const Policy& layout, const Policy& policy);
std::unique_ptr<SpmmPlan> make_csr_segmented_spmm(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                                  const Policy& policy, Stream& stream);

std::vector<Policy> csr_vector_spmm_policies(const Storage& storage, const RightHandSides& rhs);
std::unique_ptr<SpmmPlan> make_csr_vector_spmm(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                               const Policy& policy, Stream& stream);

std::unique_ptr<SpmmPlan> make_csr_swa(std::shared_ptr<Storage> storage, const RightHandSides& rhs, const Policy& policy,
                                       Stream& stream);

std::vector<Policy> csr_cusparse_spmm_policies(const Storage& storage, const RightHandSides& rhs);
bool csr_cusparse_spmm_supports(const Storage& storage, const RightHandSides& rhs);
std::unique_ptr<SpmmPlan> make_csr_cusparse_spmm(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                                 const Policy& policy, Stream& stream);

}  // namespace shardmat
