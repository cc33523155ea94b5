// The kernels for several right-hand sides on packed rows.
#pragma once

#include <memory>
#include <vector>

#include "kernels/formats/packed.h"
#include "kernels/spmm_plan.h"

namespace shardmat {

std::vector<Policy> packed_spmm_policies(const Storage& storage, const RightHandSides& rhs);
std::unique_ptr<SpmmPlan> make_packed_spmm(std::shared_ptr<Storage> storage, const RightHandSides& rhs, const Policy& policy,
                                           Stream& stream);

std::vector<Policy> packed_stencil_spmm_policies(const Storage& storage, const RightHandSides& rhs);
std::unique_ptr<SpmmPlan> make_packed_stencil_spmm(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                                   const Policy& policy, Stream& stream);

/// On the host: layouts with block = lanes = 1.
bool packed_spmm_host_supports(const Storage& storage, const RightHandSides& rhs);
std::unique_ptr<SpmmPlan> make_packed_spmm_host(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                                const Policy& policy, Stream& stream);

/// On the host: the same layouts, up to eight right-hand sides, in any order.
bool packed_columns_host_supports(const Storage& storage, const RightHandSides& rhs);
std::unique_ptr<SpmmPlan> make_packed_columns_host(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                                   const Policy& policy, Stream& stream);

/// Orders the slices so that each cluster of `cluster` consecutive slices shares many columns. A greedy search builds a
/// cluster: it takes the first slice that is left, then always the slice with the greatest share of its columns already in
/// the cluster. If the columns of a slice span more than `window` rows of X, clusters are ordered as well, so that clusters
/// that share columns run at about the same time (order_by_halving()). Considers shared slots only. Runs on the host, in
/// time about proportional to the number of slices.
std::vector<std::int32_t> clustered_slices(const PackedStorage& a, int cluster, std::int64_t window, Stream& stream);

}  // namespace shardmat
