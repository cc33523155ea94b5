// Rows of batches on the host. The sums of a group of columns lie in vectors and stay in registers.
//
// Order of summation: a row with up to 16 entries has one sum, from its first entry to its last. In a longer row entry k is
// added to sum k mod 4, so that additions overlap; in the end (sum 0 + sum 1) + (sum 2 + sum 3). If the rows of a matrix
// have different lengths, 0·0 is added to a row with up to 3 entries, which changes nothing but the sign of a zero.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

#include "kernels/batched/matrix_of.h"
#include "kernels/batched/operands.h"
#include "kernels/host/dense_columns.h"
#include "kernels/host/even_starts.h"

namespace shardmat::batched {

constexpr std::int64_t kShortRow = 16;  ///< most entries of a row with one sum

/// The rows of a matrix in compressed form, and the rows of X that belong to its columns. Row i has the entries
/// row_ptr[i] … row_ptr[i + 1] - 1. `X`: type of X.
template <class A, class X = A>
struct HostRows {
  const std::int32_t* row_ptr;
  const std::int32_t* col_idx;
  const A* values;
  ColumnsOfX<X> x;
  bool uneven;  ///< has_uneven_rows() of the matrix
};

/// True if the rows of the matrix have different lengths for certain. The CPU cannot predict their ends then.
inline bool has_uneven_rows(const DeviceBatch& batch, std::size_t matrix) {
  const std::int32_t rows = batch.at.first_row[matrix + 1] - batch.at.first_row[matrix];
  return rows > 0 && (batch.at.first_entry[matrix + 1] - batch.at.first_entry[matrix]) % rows != 0;
}

/// Work of a product in groups of 16 columns, which take about half a nanosecond each.
struct WorkOf {
  std::int64_t row, entry;
};

/// First rows of tasks of about equal work, then the number of rows. Takes all rows of a matrix to be equally long: row
/// pointers may change from product to product, the offsets of the matrices do not.
inline std::vector<std::int64_t> task_starts(const DeviceBatch& batch, const WorkOf& work) {
  constexpr std::int64_t kFewest = 1 << 16;  // for several threads: less is done before a sleeping one begins
  const BatchOffsets& at = batch.at;
  if (work.row * at.rows() + work.entry * at.nnz() < kFewest) return {0, at.rows()};
  return even_starts(at.rows(), [&](std::int64_t row) {
    const auto i = static_cast<std::size_t>(matrix_of(row, at.first_row.data(), static_cast<std::int32_t>(at.count())));
    const std::int64_t rows = std::max(1, at.first_row[i + 1] - at.first_row[i]);
    const std::int64_t entries = at.first_entry[i + 1] - at.first_entry[i];
    const std::int64_t before = at.first_entry[i] + entries * std::min(rows, row - at.first_row[i]) / rows;
    return work.row * row + work.entry * before;
  });
}

/// Y = A·X with the epilogue of `y`, where A has `rows` rows. Compiled for the instruction set; runs on the calling thread.
/// Rows and columns of Y begin with its first; its X is not read. Instances: A and X of one type, and for A of 16 bits X of
/// f32.
template <class T, class A, class X>
void multiply_rows(Isa isa, const Operands<T, X>& y, const HostRows<A, X>& a, std::int64_t rows);

}  // namespace shardmat::batched
