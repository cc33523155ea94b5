// Matrices that a program assembles itself: each rank hands in rows, or triplets of any rows.
//
// Ownership: OwnRows and OwnTriplets own nothing; what they name is copied before the functions return.
// Threads: one thread of each rank; everything here is collective, and errors are the same on all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/base/types.h"

namespace shardmat {

class Context;
struct LoadedPart;

/// This rank's rows of a matrix in host memory, for a DistributedMatrix. Owns them. Move-only; nothing is collective.
class MatrixPart {
 public:
  MatrixPart(LoadedPart rows);
  MatrixPart(MatrixPart&&) noexcept;
  MatrixPart& operator=(MatrixPart&&) noexcept;
  ~MatrixPart();
  LoadedPart& operator*() const { return *rows_; }
  LoadedPart* operator->() const { return rows_.get(); }

 private:
  std::unique_ptr<LoadedPart> rows_;
};

/// Values of a caller, in f64 or f32. Owns nothing.
struct ConstValues {
  const void* data = nullptr;
  ValueType type = ValueType::f64;

  ConstValues() = default;
  ConstValues(std::nullptr_t) {}
  ConstValues(const double* values) : data(values) {}
  ConstValues(const float* values) : data(values), type(ValueType::f32) {}
  ConstValues(const void* values, ValueType of) : data(values), type(of) {}
};

/// Rows that a rank owns. The ranges of all ranks together hold each row of the matrix once. They may have different
/// lengths, be empty, and follow each other in any order of the ranks. For a square matrix, each rank owns the entries of x
/// and y in its range. For any other matrix, each rank owns an even share of x. A rank may give several ranges: in its
/// arrays and vectors, the rows of each range follow those of the range before. Such rows cannot be spread anew.
struct RowRange {
  std::int64_t first = 0, count = 0;
};

// Spreading rows anew. By default, rows stay on the ranks that gave them. This leaves ranks idle if the caller's ranges hold
// unequal work. With `method`, the name of a partitioner (partitioner.h), rows are spread anew: "nnz" for equal nonzeros on
// all ranks, "rows" for equal rows. Rank p then owns the rows starts()[p] … starts()[p + 1] - 1 of DistributedMatrix::
// y_rows() in global numbers, as of a file. Rank 0 meanwhile holds 16 bytes for each row of the matrix. All rows of a node,
// `node_block_size` consecutive rows, go to one rank; 0: the number is found in the pattern. Block Jacobi takes the same
// number, also without a method.
// - The caller's rows and order remain those of DistributedVector::set_own() and own(), and of update_values(). These calls
//   move entries between ranks, through host memory also on GPUs, and are collective.
// - The rows that the rank now owns are those of y_rows() and x_rows(), DistributedVector::view(), Product::x(), and of
//   the blocks of block_diagonal(), which refuses a size whose blocks the ranges of the ranks cut.
// - x of a matrix that is not square lies in even shares, with a method or without.

/// This rank's rows as CSR with global columns, in memory of the host or of a GPU. A column may come once in a row; columns
/// may be in any order.
struct OwnRows {
  RowRange range;
  std::int64_t cols = 0;                  ///< of the whole matrix
  std::span<const std::int64_t> row_ptr;  ///< one entry more than rows; the first may be any offset
  std::span<const std::int64_t> columns;  ///< as many as row_ptr spans
  ConstValues values = {};                ///< as many
  /// Where the three arrays lie. REQUIRES, on a GPU: the work that fills them has finished.
  Device device = {};
  /// Ranges whose rows follow those of `range`, whatever their numbers.
  std::vector<RowRange> further = {};
};

/// Throws Error(input) unless these offsets, in host memory, ascend and fit the numbers of rows and columns. Not collective.
void require_offsets(std::span<const std::int64_t> row_ptr, const OwnRows& rows);

/// The rows as a part of a distributed matrix. They are copied, so the arrays may be freed. Throws Error(input), naming the
/// row, for impossible offsets or columns, for NaN and infinity, and for a column that comes twice in a row; also for ranges
/// that leave rows out or overlap. Throws Error(usage) for an unknown `method`, or one that differs between ranks.
MatrixPart take_rows(const OwnRows& rows, Context& context, ValueType type = ValueType::f64, std::string_view method = "",
                     std::int64_t node_block_size = 0);

/// Entries (row, column, value) of any rows, as finite element codes assemble them, in memory of the host or of a GPU.
struct OwnTriplets {
  RowRange range;                               ///< rows of the matrix that this rank will own, and of its vectors
  std::int64_t cols = 0;                        ///< of the whole matrix
  std::span<const std::int64_t> rows, columns;  ///< global
  ConstValues values = {};                      ///< as many
  Device device = {};
  std::vector<RowRange> further = {};  ///< as of OwnRows
};

/// Sends each triplet to the rank that owns its row. Triplets of the same row and column are summed in a fixed order: by
/// rank, then in the order in which they were given. update_values() then takes the values of the same triplets. Throws as
/// take_rows(), naming the triplet.
MatrixPart take_triplets(const OwnTriplets& triplets, Context& context, ValueType type = ValueType::f64,
                         std::string_view method = "", std::int64_t node_block_size = 0);

}  // namespace shardmat
