// A run is two or more nonzeros of a row in consecutive columns: the "blocks" of row block packing (Kawamura, Yoneda,
// Iwamura, Watanabe, Inoguchi). Finds the runs of a matrix, and has the paper's formulas (1) to (8) for the bytes of its
// formats.
#pragma once

#include <cstdint>

#include "kernels/base/host_vector.h"
#include "kernels/matrix/rows.h"

namespace shardmat {

/// The letters are those of the paper.
struct RunStatistics {
  std::int64_t rows = 0;         ///< N
  std::int64_t nnz = 0;          ///< N_z
  std::int64_t singles = 0;      ///< N_non: nonzeros outside runs
  std::int64_t in_runs = 0;      ///< N_val: nonzeros inside runs
  std::int64_t bounds = 0;       ///< N_col: first and last columns of runs, two a run
  std::int64_t max_row = 0;      ///< K: nonzeros of the longest row
  std::int64_t max_in_runs = 0;  ///< K_v: most nonzeros inside runs in one row
  std::int64_t max_bounds = 0;   ///< K_c: most first and last columns in one row
};

/// Of the rows of both, which come from the same matrix.
RunStatistics joined(const RunStatistics& a, const RunStatistics& b);

/// Row offsets into three sequences: nonzeros inside runs, bounds of runs, nonzeros outside runs. rows + 1 entries each.
struct Runs {
  RunStatistics statistics;
  HostVector<std::int64_t> in_runs;
  HostVector<std::int64_t> bounds;
  HostVector<std::int64_t> singles;
};

/// REQUIRES: a validated matrix (columns of a row strictly increasing). Parallel; O(nnz).
Runs find_runs(const CsrView& matrix);

/// Whether nonzero k of `row` continues a run, is continued by a run, or is inside one. They read only its neighbours.
inline bool continues_run(const Rows& rows, std::int64_t row, std::int64_t k) {
  return k > rows.begin(row) && rows.column(k) == rows.column(k - 1) + 1;
}
inline bool run_goes_on(const Rows& rows, std::int64_t row, std::int64_t k) {
  return k + 1 < rows.end(row) && rows.column(k + 1) == rows.column(k) + 1;
}
inline bool in_run(const Rows& rows, std::int64_t row, std::int64_t k) {
  return continues_run(rows, row, k) || run_goes_on(rows, row, k);
}
/// True for the first and the last nonzero of a run.
inline bool bounds_run(const Rows& rows, std::int64_t row, std::int64_t k) {
  return continues_run(rows, row, k) != run_goes_on(rows, row, k);
}

/// Bytes of one value and of one offset; the paper has 8 and 4. Columns take 4 bytes.
struct EntryBytes {
  std::int64_t value = 8;
  std::int64_t offset = 4;
};
std::int64_t csr_bytes(const RunStatistics& s, EntryBytes bytes = {});        ///< (1)
std::int64_t ell_bytes(const RunStatistics& s, EntryBytes bytes = {});        ///< (2)
std::int64_t ell_r_bytes(const RunStatistics& s, EntryBytes bytes = {});      ///< (3)
std::int64_t rbp_csr_bytes(const RunStatistics& s, EntryBytes bytes = {});    ///< (4)
std::int64_t rbp_ell_bytes(const RunStatistics& s, EntryBytes bytes = {});    ///< (5)
std::int64_t rbp_ell_r_bytes(const RunStatistics& s, EntryBytes bytes = {});  ///< (6)

/// Condition (7): RBP-CSR takes fewer bytes than CSR, with 8-byte values and 4-byte offsets.
bool rbp_csr_saves(const RunStatistics& s);
/// Condition (8): with the same sizes, RBP-ELL takes fewer bytes than ELL, and RBP-ELL-R fewer than ELL-R.
bool rbp_ell_saves(const RunStatistics& s);

}  // namespace shardmat
