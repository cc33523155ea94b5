// Views of dense matrices and vectors: sizes, order, type and device. A view owns nothing.
// Ownership: views; the caller keeps the memory. Nothing is collective.
// Threads: any thread, several at a time; a view owns nothing and shares nothing.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/base/device.h"
#include "kernels/base/types.h"

namespace shardmat {

/// Entry (i, j) of a dense matrix with leading dimension ld is at i·ld + j (row_major) or i + j·ld (column_major).
enum class DenseOrder { row_major, column_major };

/// `rows` × `columns` values of `type` in memory of `device`. A vector has one column.
template <class Pointer>
struct DenseView {
  Pointer data = nullptr;
  std::int64_t rows = 0, columns = 1;
  std::int64_t leading = 1;  ///< entries from one row to the next (row_major), or from one column to the next
  DenseOrder order = DenseOrder::row_major;
  ValueType type = ValueType::f64;
  Device device = {};
  std::uint64_t row_map =
      0;  ///< RowMap::number() of the map of the rows (runtime/maps/row_map.h); 0: not known, so nothing compares it
};
using Dense = DenseView<void*>;
struct ConstDense : DenseView<const void*> {
  ConstDense() = default;
  /// One column of values in memory of `device`.
  ConstDense(const double* values, std::int64_t count, Device where = {})
      : DenseView<const void*>{values, count, 1, 1, DenseOrder::row_major, ValueType::f64, where} {}
  ConstDense(const float* values, std::int64_t count, Device where = {})
      : DenseView<const void*>{values, count, 1, 1, DenseOrder::row_major, ValueType::f32, where} {}
  ConstDense(const Dense& d)
      : DenseView<const void*>{d.data, d.rows, d.columns, d.leading, d.order, d.type, d.device, d.row_map} {}
};

/// Throws Error(usage), naming both sides, unless the view has these sizes, type and device, and a leading dimension that
/// holds a row (row_major) or a column. One column has no gaps. `what` names the view in the message: "X".
void require_dense(std::string_view what, const ConstDense& view, std::int64_t rows, std::int64_t columns, ValueType type,
                   Device device);

/// A factor for each column: value · per_column[j], or value alone.
struct Factor {
  double value = 1;
  const double* per_column = nullptr;  ///< f64 in device memory, for example dot products of columns
};

}  // namespace shardmat
