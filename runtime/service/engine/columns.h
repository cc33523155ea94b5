// From vectors that lie one after another in original order to a rank's part of X, whose columns are interleaved. The way
// back is unpack_columns_on_host() (kernels/column_packing.h).
//
// Threads: any thread; the loops take its thread_count().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/base/types.h"
#include "kernels/spmm_plan.h"

namespace shardmat::service {

/// Entry (i, j) of `to` becomes entry ids[i] of vector j, and zero for the columns behind the given ones. Columns whose
/// vector is null stay as they are.
void gather_columns(std::span<const std::byte* const> vectors, std::span<const std::int64_t> ids, ValueType type,
                    std::int64_t width, DenseStrides strides, void* to);

}  // namespace shardmat::service
