// Statistics of the row lengths of a matrix, used to choose kernels and in reports.
#pragma once

#include <cstdint>
#include <span>

namespace shardmat {

struct RowStatistics {
  std::int64_t rows = 0;
  std::int64_t nnz = 0;
  std::int64_t min_row = 0;  ///< nonzeros of the shortest row
  std::int64_t max_row = 0;  ///< nonzeros of the longest row
  std::int64_t empty_rows = 0;
  double mean_row = 0;    ///< nnz / rows; 0 without rows
  double stddev_row = 0;  ///< population standard deviation of row lengths
};

/// row_ptr has rows + 1 entries (or none for a matrix without rows); row_ptr[0] may be any value.
RowStatistics row_statistics(std::span<const std::int64_t> row_ptr);

}  // namespace shardmat
