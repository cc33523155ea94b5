#include "runtime/boundary_rows.h"

#include <algorithm>
#include <atomic>

#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "partition/partitioner.h"

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
  constexpr double kMostGrowth = 1.25;
  BoundaryRows boundary;
  boundary.of_row.resize(static_cast<std::size_t>(part.rows));
  const auto at = [&](std::int64_t row) { return part.row_ptr[static_cast<std::size_t>(row)]; };
  const auto foreign = [&](std::int64_t row) {
    return std::any_of(part.col_idx.begin() + at(row), part.col_idx.begin() + at(row + 1),
                       [&](std::int64_t column) { return column < begin || column >= end; });
  };
  std::atomic<std::int64_t> rows = 0, nnz = 0, whole_rows = 0, whole_nnz = 0;  // those that wait, and with their neighbours
  const std::int64_t blocks = part.rows / kRowsTogether, rest = blocks * kRowsTogether;
  const auto mark = [&](std::int64_t first, std::int64_t last) {
    std::int64_t waiting = 0, their_nnz = 0;
    for (std::int64_t row = first; row < last; ++row) {
      const bool waits = foreign(row);
      boundary.of_row[static_cast<std::size_t>(row)] = waits ? 1 : 0;
      if (waits) ++waiting, their_nnz += at(row + 1) - at(row);
    }
    if (waiting == 0) return;
    rows += waiting, nnz += their_nnz;
    if (first < rest) whole_rows += last - first, whole_nnz += at(last) - at(first);
  };
  parallel_ranges(blocks, 1 << 9, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t b = first; b < last; ++b) mark(b * kRowsTogether, (b + 1) * kRowsTogether);
  });
  mark(rest, part.rows);
  boundary.rows = rows, boundary.nnz = nnz;
  if (rows == 0) return boundary;
  whole_rows += part.rows - rest, whole_nnz += at(part.rows) - at(rest);
  if (static_cast<double>(whole_nnz) > kMostGrowth * static_cast<double>(nnz)) return boundary;
  const auto complete = [&](std::int64_t first, std::int64_t last, bool always) {
    const auto from = boundary.of_row.begin() + first, to = boundary.of_row.begin() + last;
    if (always || std::find(from, to, 1) != to) std::fill(from, to, 1);
  };
  parallel_ranges(blocks, 1 << 9, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t b = first; b < last; ++b) complete(b * kRowsTogether, (b + 1) * kRowsTogether, false);
  });
  complete(rest, part.rows, true);
  boundary.rows = whole_rows, boundary.nnz = whole_nnz;
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
