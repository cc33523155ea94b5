#include "runtime/matrix/boundary_rows.h"

#include <algorithm>
#include <atomic>

#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"

namespace shardmat {
namespace {

/// Boundary rows in the first half of the part.
std::int64_t before_middle(const BoundaryRows& boundary) {
  const auto first = boundary.of_row.begin();
  return std::count(first, first + std::ssize(boundary.of_row) / 2, 1);
}

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
  std::rotate(order.end() - rows, order.end() - rows + before_middle(*this), order.end());
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
  const HostCsr taken = take_boundary_rows(part, boundary);  // what it leaves keeps its memory
  part.row_ptr.reserve(boundary.of_row.size() + 1);
  const auto append = [&](std::int64_t first, std::int64_t last) {
    const std::int64_t from = taken.row_ptr[static_cast<std::size_t>(first)],
                       to = taken.row_ptr[static_cast<std::size_t>(last)], nnz = part.nnz();
    for (std::int64_t row = first + 1; row <= last; ++row)
      part.row_ptr.push_back(nnz + taken.row_ptr[static_cast<std::size_t>(row)] - from);
    part.col_idx.insert(part.col_idx.end(), taken.col_idx.begin() + from, taken.col_idx.begin() + to);
    part.values.insert(part.values.end(), taken.values.begin() + from, taken.values.begin() + to);
    part.rows += last - first;
  };
  const std::int64_t middle = before_middle(boundary);
  append(middle, taken.rows);
  append(0, middle);
}

}  // namespace shardmat
