// The two implementations behind column_packing.h. Internal to kernels/.
#pragma once

#include "kernels/column_packing.h"

namespace shardmat {

void pack_columns_cuda(ValueType type, std::int64_t n, std::span<const void* const> vectors, void* to, std::int64_t width,
                       Stream& stream);
void unpack_columns_cuda(ValueType type, std::int64_t n, const void* sums, std::int64_t width,
                         std::span<const UnpackedColumn> columns, Stream& stream);

void pack_columns_host(ValueType type, std::int64_t n, std::span<const void* const> vectors, void* to, std::int64_t width);
/// `places`: null if row i goes to entry i. `backend`: of the product, whose kernels round in their own way.
void unpack_columns_host(ValueType type, std::int64_t n, const void* sums, std::int64_t width, const std::int64_t* places,
                         std::span<const UnpackedColumn> columns, Backend backend);

}  // namespace shardmat
