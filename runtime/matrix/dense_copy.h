// Between dense matrices of the caller, in either order and with gaps, and values in host memory that lie row by row.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/base/dense.h"
#include "kernels/base/device.h"
#include "kernels/base/host_vector.h"

namespace shardmat {

/// Throws Error(usage), naming both sides, unless the view has these sizes, memory of the host or of `device`, and a leading
/// dimension that holds a row (row_major) or a column. Type and order may be any. `what` names the view in the message.
void require_shape(std::string_view what, const ConstDense& view, std::int64_t rows, std::int64_t columns, Device device);

/// All entries as f64, row by row; waits for the stream. REQUIRES: memory of the host, or of the stream's device.
HostVector<double> to_host(const ConstDense& view, Stream& stream);
/// The opposite; gaps stay as they are. Throws Error(input) for values beyond the range of the view's type. REQUIRES:
/// rows · columns values.
void from_host(std::span<const double> values, const Dense& view, Stream& stream);

}  // namespace shardmat
