// The kernels for many right-hand sides that work on packed rows.
#pragma once

#include <memory>
#include <vector>

#include "kernels/formats/packed.h"
#include "kernels/spmm.h"

namespace shardmat {

std::vector<Policy> packed_spmm_policies(const Storage& storage, const RightHandSides& rhs);
std::unique_ptr<SpmmPlan> make_packed_spmm(std::shared_ptr<Storage> storage, const RightHandSides& rhs, const Policy& policy,
                                           Stream& stream);

std::vector<Policy> packed_stencil_spmm_policies(const Storage& storage, const RightHandSides& rhs);
std::unique_ptr<SpmmPlan> make_packed_stencil_spmm(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                                   const Policy& policy, Stream& stream);

/// Numbers of the slices, ordered so that each `cluster` neighbours in the order share as many columns as a greedy search
/// finds: the first slice left, then always the one of whose columns the greatest part is there. Where the columns of a
/// slice reach over more than `window` rows of X, many clusters are ordered so that those that share columns come at about
/// the same time (order_by_halving()). Shared slots alone are looked at. On the host, in little more than time proportional
/// to the slices.
std::vector<std::int32_t> clustered_slices(const PackedStorage& a, int cluster, std::int64_t window, Stream& stream);

}  // namespace shardmat
