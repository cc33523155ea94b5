// Matrices on the host: compressed sparse rows. Every reader and generator produces HostCsr, with 64-bit indices and f64
// values. Every format is converted from a CsrView, whose columns and values may be narrower.
//
// Threads: one thread at a time changes a matrix; several may read it. HostCsr owns its arrays, CsrView owns nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kernels/base/host_vector.h"
#include "kernels/base/number_view.h"

namespace shardmat {

class RowRelease;

/// Non-owning CSR. row_ptr has rows + 1 entries and starts at row_ptr[0] (not necessarily 0, so that a view can be a
/// range of rows of a larger matrix); col_idx and values are indexed by row_ptr[i] - row_ptr[0].
struct CsrView {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::span<const std::int64_t> row_ptr;
  ColumnView col_idx;
  ValueView values;
  /// Owns the memory of col_idx and values. A storage may then keep these arrays instead of a copy, so nobody may change
  /// them. Null: the caller keeps the arrays, and every storage copies them.
  std::shared_ptr<const void> owner = nullptr;
  std::int64_t diagonal = 0;  ///< the column of row 0 on the diagonal, in a range of rows of a square matrix
  /// A conversion may release the rows that it has read (row_release.h): nobody needs them later. Null: the rows stay.
  RowRelease* release = nullptr;

  std::int64_t nnz() const { return rows == 0 ? 0 : row_ptr[static_cast<std::size_t>(rows)] - row_ptr[0]; }
  /// Rows [begin, end).
  CsrView rows_between(std::int64_t begin, std::int64_t end) const {
    const auto place = [this](std::int64_t row) { return row_ptr[static_cast<std::size_t>(row)] - row_ptr[0]; };
    const auto first = static_cast<std::size_t>(place(begin)), count = static_cast<std::size_t>(place(end)) - first;
    return {end - begin,
            cols,
            row_ptr.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin) + 1),
            col_idx.subspan(first, count),
            values.subspan(first, count),
            owner,
            diagonal + begin,
            release};
  }
};

/// Owning CSR: row_ptr[0] = 0, columns of a row strictly increasing, so no duplicates.
struct HostCsr {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  HostVector<std::int64_t> row_ptr{0};  ///< rows + 1 entries
  HostVector<std::int64_t> col_idx;     ///< nnz entries, 0-based
  HostVector<double> values;            ///< nnz entries

  std::int64_t nnz() const { return row_ptr.back(); }
  CsrView view() const { return {rows, cols, row_ptr, col_idx, values, nullptr}; }
  /// 8·(rows+1) + 16·nnz.
  std::int64_t bytes() const { return 8 * (rows + 1) + 16 * nnz(); }
};

struct ValidationOptions {
  bool allow_nonfinite = false;   ///< accept NaN and infinity among the values
  std::int64_t first_row = 0;     ///< added to row numbers in messages, for a range of rows of a larger matrix
  std::string source = "matrix";  ///< what messages call the matrix, e.g. the file name
};

/// Checks array sizes, that row_ptr does not decrease, that columns are in [0, cols) and strictly increase in each row, and
/// that values are finite. Parallel. Throws Error(input), which names the first wrong row (0-based) and the reason.
void validate(const CsrView& matrix, const ValidationOptions& options = {});

/// Number of columns that have an entry, of which there are at most `most`: known sooner if there are so many. Parallel;
/// takes a byte a column. Throws Error(resources) before it allocates.
std::int64_t occupied_columns(const CsrView& matrix, std::int64_t most);

/// Sorts columns within each row and adds up duplicates, in place; row_ptr is rebuilt and the arrays shrunk.
/// Parallel; peak extra memory is O(rows + longest row).
void sort_rows_and_sum_duplicates(HostCsr& matrix);

}  // namespace shardmat
