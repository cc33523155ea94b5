// Many small sparse matrices as one flat structure. The arrays of all matrices are concatenated, and offsets say where each
// matrix begins. So a batch with any mixture of sizes is five arrays, which are copied at once and read in place. Dense
// operands are stacked in the same way: the rows of X for the first matrix, then the rows for the second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "kernels/base/host_vector.h"

namespace shardmat {

/// Non-owning batch in compressed sparse rows. The three arrays of offsets may begin at any number, so that a view can be a
/// range of a larger batch; col_idx and values are indexed by row_ptr[r] - row_ptr[0].
struct BatchView {
  /// count() + 1 entries: matrix i has the rows first_row[i] … first_row[i + 1] - 1 of the stacked Y …
  std::span<const std::int64_t> first_row;
  /// … and is multiplied with the rows first_col[i] … first_col[i + 1] - 1 of the stacked X, one a column.
  std::span<const std::int64_t> first_col;
  std::span<const std::int64_t> row_ptr;  ///< rows() + 1 entries; the offsets continue from matrix to matrix
  std::span<const std::int32_t> col_idx;  ///< nnz() columns within the matrix, in any order; duplicates are summed
  std::span<const double> values;         ///< nnz() entries

  std::int64_t count() const { return first_row.empty() ? 0 : std::ssize(first_row) - 1; }
  std::int64_t rows() const { return count() == 0 ? 0 : first_row.back() - first_row.front(); }  ///< of all matrices
  std::int64_t cols() const { return count() == 0 ? 0 : first_col.back() - first_col.front(); }
  std::int64_t nnz() const { return count() == 0 ? 0 : row_ptr.back() - row_ptr.front(); }
  std::int64_t rows_of(std::int64_t matrix) const { return length(first_row, matrix); }
  std::int64_t cols_of(std::int64_t matrix) const { return length(first_col, matrix); }
  std::int64_t nnz_of(std::int64_t matrix) const;
  /// Matrices [begin, end).
  BatchView slice(std::int64_t begin, std::int64_t end) const;

 private:
  static std::int64_t length(std::span<const std::int64_t> first, std::int64_t matrix) {
    return first[static_cast<std::size_t>(matrix) + 1] - first[static_cast<std::size_t>(matrix)];
  }
};

/// Owning batch, all offsets from 0.
struct HostBatch {
  HostVector<std::int64_t> first_row{0}, first_col{0}, row_ptr{0};
  HostVector<std::int32_t> col_idx;
  HostVector<double> values;

  BatchView view() const { return {first_row, first_col, row_ptr, col_idx, values}; }
  /// Makes room for so much in all, so that append() allocates nothing.
  void reserve(std::int64_t count, std::int64_t rows, std::int64_t nnz);
  /// Appends all matrices of `more`.
  void append(const BatchView& more);
};

/// Non-owning batch of coordinates, like one SparseTensor for each matrix: entries in any order; duplicates are summed.
struct CooBatchView {
  std::span<const std::int64_t> first_row, first_col;  ///< as in BatchView
  std::span<const std::int64_t> first_entry;           ///< count() + 1 entries: where the entries of a matrix begin
  std::span<const std::int32_t> row_idx, col_idx;      ///< nnz() rows and columns within the matrix
  std::span<const double> values;                      ///< nnz() entries

  std::int64_t count() const { return first_row.empty() ? 0 : std::ssize(first_row) - 1; }
  std::int64_t nnz() const { return count() == 0 ? 0 : first_entry.back() - first_entry.front(); }
};

struct HostCooBatch {
  HostVector<std::int64_t> first_row{0}, first_col{0}, first_entry{0};
  HostVector<std::int32_t> row_idx, col_idx;
  HostVector<double> values;

  CooBatchView view() const { return {first_row, first_col, first_entry, row_idx, col_idx, values}; }
};

/// Converts to coordinates; `seed` shuffles the entries of each matrix (0: row by row).
HostCooBatch to_coo(const BatchView& batch, std::uint64_t seed = 0);
/// Converts to compressed rows; the entries of a row keep their order.
HostBatch to_csr(const CooBatchView& batch);
/// The transposes of all matrices, with ascending columns in each row.
HostBatch transposed(const BatchView& batch);

/// Checks array sizes, that offsets ascend, that every index is within its matrix, and that values are finite. Parallel.
/// Throws Error(input), which names `source`, the first wrong matrix and its entry, both counted from 0. `first_matrix` is
/// added to the number of the matrix, for a range of a larger batch.
void validate(const BatchView& batch, const std::string& source = "batch", std::int64_t first_matrix = 0);
void validate(const CooBatchView& batch, const std::string& source = "batch", std::int64_t first_matrix = 0);

}  // namespace shardmat
