#include "partition/writers/columns.h"

#include <algorithm>

#include "kernels/base/memory_limits.h"

namespace shardmat {

Columns columns_of(const RowSource& source, std::int64_t nnz, const Progress& progress) {
  require_host_memory(16 * nnz + 8 * source.cols(), "the columns of a .mat file");
  Columns columns;
  columns.pointers.assign(static_cast<std::size_t>(source.cols()) + 1, 0);
  std::int64_t counted = 0;
  for_each_row_slice(source, 0, source.rows(), [&](std::int64_t, const CsrView& slice) {
    for (std::int64_t k = 0; k < slice.nnz(); ++k)
      ++columns.pointers[static_cast<std::size_t>(slice.col_idx[static_cast<std::size_t>(k)]) + 1];
    report(progress, "count columns", counted += slice.nnz(), nnz);
  });
  for (std::size_t j = 1; j < columns.pointers.size(); ++j) columns.pointers[j] += columns.pointers[j - 1];
  columns.rows.resize(static_cast<std::size_t>(nnz));
  columns.values.resize(static_cast<std::size_t>(nnz));
  std::int64_t placed = 0;
  for_each_row_slice(source, 0, source.rows(), [&](std::int64_t first_row, const CsrView& slice) {
    for (std::int64_t i = 0; i < slice.rows; ++i)
      for (std::int64_t k = slice.row_ptr[static_cast<std::size_t>(i)]; k < slice.row_ptr[static_cast<std::size_t>(i) + 1];
           ++k) {
        const auto from = static_cast<std::size_t>(k - slice.row_ptr[0]);
        const auto at = static_cast<std::size_t>(columns.pointers[static_cast<std::size_t>(slice.col_idx[from])]++);
        columns.rows[at] = first_row + i;
        columns.values[at] = slice.values[from];
      }
    report(progress, "sort columns", placed += slice.nnz(), nnz);
  });
  std::copy_backward(columns.pointers.begin(), columns.pointers.end() - 1, columns.pointers.end());
  columns.pointers.front() = 0;
  return columns;
}

}  // namespace shardmat
