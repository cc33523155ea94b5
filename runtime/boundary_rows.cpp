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
  constexpr std::int64_t kTogether = BoundaryRows::kTogether;
  BoundaryRows boundary;
  boundary.of_row.resize(static_cast<std::size_t>(part.rows));
  const auto at = [&](std::int64_t row) { return part.row_ptr[static_cast<std::size_t>(row)]; };
  std::atomic<std::int64_t> rows = 0, nnz = 0;
  const auto mark = [&](std::int64_t first, std::int64_t last, bool waits) {
    std::fill(boundary.of_row.begin() + first, boundary.of_row.begin() + last, waits ? 1 : 0);
    if (waits) rows += last - first, nnz += at(last) - at(first);
  };
  const std::int64_t whole = part.rows / kTogether;
  const auto foreign = [&](std::int64_t first, std::int64_t last) {
    return std::any_of(part.col_idx.begin() + at(first), part.col_idx.begin() + at(last),
                       [&](std::int64_t column) { return column < begin || column >= end; });
  };
  parallel_ranges(whole, 1 << 9, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t b = first; b < last; ++b)
      mark(b * kTogether, (b + 1) * kTogether, foreign(b * kTogether, (b + 1) * kTogether));
  });
  const std::int64_t rest = whole * kTogether;
  mark(rest, part.rows, rows > 0 || foreign(rest, part.rows));
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
