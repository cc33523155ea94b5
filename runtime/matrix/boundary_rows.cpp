#include "runtime/matrix/boundary_rows.h"

#include <algorithm>
#include <atomic>
#include <span>

#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"

namespace shardmat {
namespace {

/// Boundary rows in the first half of the part.
std::int64_t before_middle(const BoundaryRows& boundary) {
  const auto first = boundary.of_row.begin();
  return std::count(first, first + std::ssize(boundary.of_row) / 2, 1);
}

/// Where each row of an order begins in an array of their entries, and the end.
HostVector<std::int64_t> offsets_in_order(const HostVector<std::int64_t>& row_ptr, std::span<const std::int64_t> order) {
  HostVector<std::int64_t> offsets(order.size() + 1);
  offsets[0] = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto row = static_cast<std::size_t>(order[i]);
    offsets[i + 1] = offsets[i] + row_ptr[row + 1] - row_ptr[row];
  }
  return offsets;
}

/// Sorts the entries of all rows in place. Only those of the boundary rows, which are last in the order, are copied.
template <class Entry>
void move_entries(std::span<Entry> entries, const HostVector<std::int64_t>& row_ptr, const HostVector<std::int64_t>& order,
                  const HostVector<std::int64_t>& offsets, std::size_t interior) {
  const auto copy_row = [&](std::size_t i, Entry* to) {
    const auto row = static_cast<std::size_t>(order[i]);
    std::copy(entries.begin() + row_ptr[row], entries.begin() + row_ptr[row + 1], to);
  };
  const std::int64_t kept = offsets[interior];
  HostVector<Entry> taken(entries.size() - static_cast<std::size_t>(kept));
  for (std::size_t i = interior; i < order.size(); ++i) copy_row(i, taken.data() + (offsets[i] - kept));
  for (std::size_t i = 0; i < interior; ++i) copy_row(i, entries.data() + offsets[i]);
  std::copy(taken.begin(), taken.end(), entries.begin() + kept);
}

}  // namespace

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
  require_host_memory(8 * boundary.nnz + 16 * part.rows, "the rows that need x of other ranks, apart");
  const HostVector<std::int64_t> order = boundary.order();
  HostVector<std::int64_t> offsets = offsets_in_order(part.row_ptr, order);
  const auto interior = static_cast<std::size_t>(part.rows - boundary.rows);
  part.change_columns([&](auto columns) { move_entries(columns, part.row_ptr, order, offsets, interior); });
  part.change_values([&](auto values) { move_entries(values, part.row_ptr, order, offsets, interior); });
  part.row_ptr.swap(offsets);
}

}  // namespace shardmat
