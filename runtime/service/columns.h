// Between vectors that lie one after another in original order and a rank's part of X or Y, whose columns are interleaved.
//
// Threads: any thread; the loops take its thread_count().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/base/types.h"
#include "kernels/spmm.h"

namespace shardmat::service {

/// Entry (i, j) of `to` becomes entry ids[i] of vector j, and zero for the columns behind the given ones.
void gather_columns(std::span<const std::byte* const> vectors, std::span<const std::int64_t> ids, ValueType type,
                    std::int64_t width, DenseStrides strides, void* to);

/// The opposite: entry ids[i] of vector j becomes alphas[j] times entry (i, j) of `from`, a row-major matrix of `width`
/// columns.
void scatter_columns(const void* from, std::int64_t width, std::span<const std::int64_t> ids, ValueType type,
                     std::span<const double> alphas, std::span<std::byte* const> vectors);

}  // namespace shardmat::service
