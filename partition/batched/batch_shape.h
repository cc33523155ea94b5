// How a batch of many small matrices with its x lies in one block of memory, as a request to the service carries it: the
// arrays of a batch file (batch_file.h) and x one after another, little-endian.
//
//   int64 first_row[count + 1]       matrix i has the stacked rows first_row[i] … first_row[i + 1] - 1
//   int64 first_column[count + 1]    the same for columns, which are rows of the stacked X
//   int64 row_ptr[rows + 1]          where the entries of each stacked row begin; all three begin with 0
//   values[nnz], x[cols · columns]   of the type; x is row-major
//   int32 column[nnz]                counted within the matrix
//
// Threads: any thread; there is no shared state.
#pragma once

#include <cstdint>

#include "kernels/base/types.h"

namespace shardmat {

struct BatchShape {
  std::int64_t count = 0;                    ///< of matrices
  std::int64_t rows = 0, cols = 0, nnz = 0;  ///< of all matrices together
  std::int64_t columns = 1;                  ///< of X and Y
  ValueType type = ValueType::f64;
  bool operator==(const BatchShape&) const = default;

  /// The most of each, so that no size is beyond 2^63.
  static constexpr std::int64_t kMost = 0x7fffffff - 4096, kMostColumns = 4096;

  std::uint64_t entry() const { return size_of(type); }
  // Where the arrays begin, in bytes.
  std::uint64_t first_col() const { return 8 * whole(count + 1); }
  std::uint64_t row_ptr() const { return 16 * whole(count + 1); }
  std::uint64_t values() const { return row_ptr() + 8 * whole(rows + 1); }
  std::uint64_t x() const { return values() + entry() * whole(nnz); }
  std::uint64_t column_indices() const { return x() + entry() * whole(cols * columns); }
  std::uint64_t bytes() const { return column_indices() + 4 * whole(nnz); }
  /// Of the answer: Y, row-major, a row for each stacked row.
  std::uint64_t y_bytes() const { return entry() * whole(rows * columns); }

 private:
  static constexpr std::uint64_t whole(std::int64_t number) { return static_cast<std::uint64_t>(number); }
};

}  // namespace shardmat
