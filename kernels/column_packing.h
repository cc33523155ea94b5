// Between separate vectors and the columns of one row-major matrix, so that products of several vectors become one product.
// Unpacking also scales: it rounds y = alpha·sum + beta·y as the kernels of products do, so that a vector has the same bits
// whether its product was made alone or with others.
//
// Threads: any thread, one at a time on a stream. Work on the host takes the calling thread's thread_count().
#pragma once

#include <cstdint>
#include <span>

#include "kernels/base/device.h"
#include "kernels/base/types.h"

namespace shardmat {

/// Column j of the matrix `to`, which has n rows of `width` entries, becomes vectors[j], in stream order. Columns without a
/// vector (null, or behind the last) stay as they are. REQUIRES: f64 or f32, memory of the stream's device.
void pack_columns(ValueType type, std::int64_t n, std::span<const void* const> vectors, void* to, std::int64_t width,
                  Stream& stream);

/// Where a column of sums goes: y = alpha·sum + beta·y. With beta = 0, y is only written.
struct UnpackedColumn {
  void* y = nullptr;  ///< null: this column goes nowhere
  double alpha = 1, beta = 0;
};

/// The opposite, in stream order: column j of `sums` goes to columns[j].
void unpack_columns(ValueType type, std::int64_t n, const void* sums, std::int64_t width,
                    std::span<const UnpackedColumn> columns, Stream& stream);

/// The same in host memory, for sums of a product on `device`: row i goes to entry places[i] of y.
void unpack_columns_on_host(ValueType type, const void* sums, std::int64_t width, std::span<const std::int64_t> places,
                            std::span<const UnpackedColumn> columns, Device device);

}  // namespace shardmat
