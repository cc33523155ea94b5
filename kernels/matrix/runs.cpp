#include "kernels/matrix/runs.h"

#include <algorithm>
#include <mutex>

#include "kernels/base/parallel.h"

namespace shardmat {

RunStatistics joined(const RunStatistics& a, const RunStatistics& b) {
  return {a.rows + b.rows,
          a.nnz + b.nnz,
          a.singles + b.singles,
          a.in_runs + b.in_runs,
          a.bounds + b.bounds,
          std::max(a.max_row, b.max_row),
          std::max(a.max_in_runs, b.max_in_runs),
          std::max(a.max_bounds, b.max_bounds)};
}

Runs find_runs(const CsrView& matrix) {
  const Rows rows(matrix);
  Runs runs;
  RunStatistics& s = runs.statistics;
  for (HostVector<std::int64_t>* offsets : {&runs.in_runs, &runs.bounds, &runs.singles})
    offsets->resize(static_cast<std::size_t>(rows.count()) + 1);
  std::mutex mutex;
  parallel_ranges(rows.count(), 1 << 12, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t max_row = 0, max_in_runs = 0, max_bounds = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t in_runs = 0, bounds = 0;
      for (std::int64_t k = rows.begin(i); k < rows.end(i); ++k) {
        in_runs += in_run(rows, i, k);
        bounds += bounds_run(rows, i, k);
      }
      const auto next = static_cast<std::size_t>(i) + 1;
      runs.in_runs[next] = in_runs;
      runs.bounds[next] = bounds;
      runs.singles[next] = rows.length(i) - in_runs;
      max_row = std::max(max_row, rows.length(i));
      max_in_runs = std::max(max_in_runs, in_runs);
      max_bounds = std::max(max_bounds, bounds);
    }
    const std::lock_guard lock(mutex);
    s.max_row = std::max(s.max_row, max_row);
    s.max_in_runs = std::max(s.max_in_runs, max_in_runs);
    s.max_bounds = std::max(s.max_bounds, max_bounds);
  });
  for (HostVector<std::int64_t>* offsets : {&runs.in_runs, &runs.bounds, &runs.singles}) accumulate_offsets(*offsets);
  s.rows = rows.count();
  s.nnz = matrix.nnz();
  s.in_runs = runs.in_runs.back();
  s.bounds = runs.bounds.back();
  s.singles = runs.singles.back();
  return runs;
}

std::int64_t csr_bytes(const RunStatistics& s, EntryBytes b) { return (b.value + 4) * s.nnz + b.offset * (s.rows + 1); }
std::int64_t ell_bytes(const RunStatistics& s, EntryBytes b) { return (b.value + 4) * s.rows * s.max_row; }
std::int64_t ell_r_bytes(const RunStatistics& s, EntryBytes b) { return ell_bytes(s, b) + 4 * s.rows; }

std::int64_t rbp_csr_bytes(const RunStatistics& s, EntryBytes b) {
  return 3 * b.offset * (s.rows + 1) + 4 * s.bounds + b.value * s.in_runs + (4 + b.value) * s.singles;
}

std::int64_t rbp_ell_bytes(const RunStatistics& s, EntryBytes b) {
  return s.rows * (b.value * s.max_in_runs + 4 * s.max_bounds) + (b.value + 4) * s.singles + b.offset * (s.rows + 1);
}

std::int64_t rbp_ell_r_bytes(const RunStatistics& s, EntryBytes b) { return rbp_ell_bytes(s, b) + 4 * s.rows; }

bool rbp_csr_saves(const RunStatistics& s) {
  return 2 * (s.nnz - s.in_runs) + (s.nnz - s.bounds) > 3 * s.singles + 2 * (s.rows + 1);
}

bool rbp_ell_saves(const RunStatistics& s) {
  return s.rows * (3 * s.max_row - 2 * s.max_in_runs - s.max_bounds) > 3 * s.singles + (s.rows + 1);
}

}  // namespace shardmat
