#include "runtime/boundary_rows.h"

#include <algorithm>
#include <atomic>

#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"

namespace shardmat {
namespace {

/// Takes the boundary rows out of the part, which closes up in place.
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

}  // namespace

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
    std::int64_t their_rows = 0, their_nnz = 0;
    for (auto row = static_cast<std::size_t>(first); row < static_cast<std::size_t>(last); ++row) {
      const std::int64_t from = part.row_ptr[row], to = part.row_ptr[row + 1];
      const bool waits = std::any_of(part.col_idx.begin() + from, part.col_idx.begin() + to,
                                     [&](std::int64_t column) { return column < begin || column >= end; });
      boundary.of_row[row] = waits ? 1 : 0;
      if (waits) ++their_rows, their_nnz += to - from;
    }
    rows += their_rows, nnz += their_nnz;
  });
  boundary.rows = rows, boundary.nnz = nnz;
  return boundary;
}

void move_boundary_last(HostCsr& part, const BoundaryRows& boundary) {
  const HostCsr last = take_boundary_rows(part, boundary);  // what it leaves keeps its memory
  const std::int64_t interior = part.nnz();
  part.rows += last.rows;
  part.row_ptr.reserve(static_cast<std::size_t>(part.rows) + 1);
  for (std::size_t i = 1; i < last.row_ptr.size(); ++i) part.row_ptr.push_back(interior + last.row_ptr[i]);
  part.col_idx.insert(part.col_idx.end(), last.col_idx.begin(), last.col_idx.end());
  part.values.insert(part.values.end(), last.values.begin(), last.values.end());
}

}  // namespace shardmat
