#include "runtime/matrix/boundary_rows.h"

#include <algorithm>
#include <atomic>

#include "kernels/base/parallel.h"
#include "runtime/matrix/reorder_rows.h"

namespace shardmat {
namespace {

/// Boundary rows in the first half of the part.
std::int64_t before_middle(const BoundaryRows& boundary) {
  const auto first = boundary.of_row.begin();
  return std::count(first, first + std::ssize(boundary.of_row) / 2, 1);
}

}  // namespace

std::int64_t BoundaryRows::rows_from_first() const { return of_row.end() - std::find(of_row.begin(), of_row.end(), 1); }

HostVector<std::int64_t> BoundaryRows::order() const {
  HostVector<std::int64_t> order(of_row.size());
  std::size_t interior = 0, last = of_row.size() - static_cast<std::size_t>(rows);
  for (std::size_t i = 0; i < of_row.size(); ++i) order[of_row[i] != 0 ? last++ : interior++] = static_cast<std::int64_t>(i);
  std::rotate(order.end() - rows, order.end() - rows + before_middle(*this), order.end());
  return order;
}

BoundaryRows find_boundary_rows(const CsrView& part, std::int64_t begin, std::int64_t end) {
  BoundaryRows boundary;
  boundary.of_row.resize(static_cast<std::size_t>(part.rows));
  std::atomic<std::int64_t> rows = 0, nnz = 0;
  part.col_idx.visit([&](const auto& columns) {
    parallel_ranges(part.rows, 1 << 12, [&](std::int64_t first, std::int64_t last) {
      std::int64_t their_rows = 0, their_nnz = 0;
      for (auto row = static_cast<std::size_t>(first); row < static_cast<std::size_t>(last); ++row) {
        const std::int64_t from = part.row_ptr[row], to = part.row_ptr[row + 1];
        const bool waits = std::any_of(columns.begin() + from, columns.begin() + to,
                                       [&](std::int64_t column) { return column < begin || column >= end; });
        boundary.of_row[row] = waits ? 1 : 0;
        if (waits) ++their_rows, their_nnz += to - from;
      }
      rows += their_rows, nnz += their_nnz;
    });
  });
  boundary.rows = rows, boundary.nnz = nnz;
  return boundary;
}

void move_boundary_last(CompactCsr& part, const BoundaryRows& boundary) {
  reorder_rows(part, boundary.order(), part.rows - boundary.rows);
}

}  // namespace shardmat
