// Products with the same bits for any number of right-hand sides (PlanRequest::same_bits). All of them store the matrix in
// one format and layout, which depends on the matrix, the type and the backend alone, and take plans that add the products
// of a row in one order (SumsInOrder).
#pragma once

#include <string_view>

#include "kernels/base/error.h"
#include "kernels/choose/registry.h"
#include "kernels/spmm_plan.h"

namespace shardmat {

/// The format of plans with the same bits.
const Format& ordered_format(ConversionInput& input, StoredEntries entries);
/// The layout of a format for plans with the same bits.
Policy ordered_layout(const Format& format, ConversionInput& input);

/// `K`: Kernel or SpmmKernel. `named`: all plans are of this kernel.
template <class K>
bool is_ordered(const K& kernel, ValueType type, const Policy& layout, const Policy& policy, bool named) {
  return (named || !kernel.own_order) && kernel.sums_in_order != nullptr && kernel.sums_in_order(type, layout, policy);
}

/// For a kernel, or auto, that has no such plan.
Error not_ordered(std::string_view kernel, ValueType type);

}  // namespace shardmat
