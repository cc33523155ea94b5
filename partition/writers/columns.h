// A matrix by columns, which some formats have.
#pragma once

#include <cstdint>

#include "kernels/base/host_vector.h"
#include "kernels/base/progress.h"
#include "partition/source/row_source.h"

namespace shardmat {

struct Columns {
  HostVector<std::int64_t> pointers;  ///< columns + 1, the first 0
  HostVector<std::int64_t> rows;      ///< of each nonzero, ascending in a column
  HostVector<double> values;
};

/// Puts the columns together in memory, because rows come from the source: 16 bytes a nonzero. Reads the source twice.
/// Throws Error(resources) if the memory does not suffice.
Columns columns_of(const RowSource& source, std::int64_t nnz, const Progress& progress);

}  // namespace shardmat
