#include "runtime/boundary_rows.h"

#include <algorithm>
#include <atomic>

#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"

namespace shardmat {

HostVector<std::int64_t> BoundaryRows::order() const {
  HostVector<std::int64_t> order(of_row.size());
  std::size_t interior = 0, last = of_row.size() - static_cast<std::size_t>(rows);
  for (std::size_t i = 0; i < of_row.size(); ++i) order[of_row[i] != 0 ? last++ : interior++] = static_cast<std::int64_t>(i);
  return order;
}

BoundaryRows find_boundary_rows(const HostCsr& part, std::int64_t begin, std::int64_t end) {
  BoundaryRows boundary;
  boundary.of_row.resize(static_cast<std::size_t>(part.rows));
  std::atomic<std::int64_t> rows = 0, nnz = 0;
  parallel_ranges(part.rows, 1 << 12, [&](std::int64_t first, std::int64_t last) {
    std::int64_t my_rows = 0, my_nnz = 0;
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
      const auto from = part.col_idx.begin() + part.row_ptr[i], to = part.col_idx.begin() + part.row_ptr[i + 1];
      const bool foreign = std::any_of(from, to, [&](std::int64_t column) { return column < begin || column >= end; });
      boundary.of_row[i] = foreign ? 1 : 0;
      if (foreign) ++my_rows, my_nnz += to - from;
    }
    rows += my_rows, nnz += my_nnz;
  });
  boundary.rows = rows, boundary.nnz = nnz;
  return boundary;
}

HostCsr take_boundary_rows(HostCsr& part, const BoundaryRows& boundary) {
  require_host_memory(16 * boundary.nnz + 8 * boundary.rows, "the rows that need x of other ranks, apart");
  HostCsr taken;
  taken.rows = boundary.rows, taken.cols = part.cols;
  taken.row_ptr.reserve(static_cast<std::size_t>(boundary.rows) + 1);
  taken.col_idx.reserve(static_cast<std::size_t>(boundary.nnz));
  taken.values.reserve(static_cast<std::size_t>(boundary.nnz));
  std::size_t kept = 0;
  std::int64_t kept_nnz = 0, begin = part.row_ptr[0];
  for (std::size_t i = 0; i < boundary.of_row.size(); ++i) {
    const std::int64_t end = part.row_ptr[i + 1];
    const auto columns = part.col_idx.begin() + begin;
    const auto values = part.values.begin() + begin;
    if (boundary.of_row[i] != 0) {
      taken.col_idx.insert(taken.col_idx.end(), columns, columns + (end - begin));
      taken.values.insert(taken.values.end(), values, values + (end - begin));
      taken.row_ptr.push_back(std::ssize(taken.values));
    } else {
      std::copy(columns, columns + (end - begin), part.col_idx.begin() + kept_nnz);
      std::copy(values, values + (end - begin), part.values.begin() + kept_nnz);
      kept_nnz += end - begin;
      part.row_ptr[++kept] = kept_nnz;
    }
    begin = end;
  }
  part.rows = static_cast<std::int64_t>(kept);
  part.row_ptr.resize(kept + 1);
  part.col_idx.resize(static_cast<std::size_t>(kept_nnz));
  part.values.resize(static_cast<std::size_t>(kept_nnz));
  return taken;
}

}  // namespace shardmat
