// Matrices that a program assembles itself: each rank hands in rows, or triplets of any rows.
//
// Threads: one thread of each rank; everything here is collective, and errors are the same on all ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "kernels/base/device.h"
#include "kernels/base/types.h"
#include "runtime/context.h"
#include "runtime/matrix/load_part.h"

namespace shardmat {

/// Rows that a rank owns. The ranges of all ranks tile the rows of the matrix: they may have different lengths, be empty,
/// and follow each other in any order of the ranks. A matrix with as many columns as rows has its x and y in these rows; of
/// any other, each rank owns an even share of x.
struct RowRange {
  std::int64_t first = 0, count = 0;
};

/// This rank's rows as CSR with global columns, in memory of the host or of a GPU. A column may come once in a row; columns
/// may be in any order.
struct OwnRows {
  RowRange range;
  std::int64_t cols = 0;                   ///< of the whole matrix
  std::span<const std::int64_t> row_ptr;   ///< range.count + 1 entries; the first may be any offset
  std::span<const std::int64_t> columns;   ///< as many as row_ptr spans
  const void* values = nullptr;            ///< as many, of values_type
  ValueType values_type = ValueType::f64;  ///< f64 or f32
  Device device = {};                      ///< where the three arrays lie
};

/// The rows as a part of a distributed matrix. They are copied: the arrays may go. Throws Error(input) for offsets, columns
/// or values (NaN, infinity) that cannot be, naming the row; for a column that comes twice in a row; for ranges that leave
/// rows out or overlap.
LoadedPart take_rows(const OwnRows& rows, Context& context, ValueType type = ValueType::f64);

/// Entries (row, column, value) of any rows, as finite element codes assemble them, in memory of the host or of a GPU.
struct OwnTriplets {
  RowRange range;                               ///< rows of the matrix that this rank will own
  std::int64_t cols = 0;                        ///< of the whole matrix
  std::span<const std::int64_t> rows, columns;  ///< global
  const void* values = nullptr;                 ///< as many, of values_type
  ValueType values_type = ValueType::f64;       ///< f64 or f32
  Device device = {};
};

/// Sends each triplet to the rank that owns its row, and adds those of the same row and column in a fixed order: by rank,
/// then in the order in which they were given. New values of the matrix are then the values of the same triplets. Throws as
/// take_rows(), naming the triplet.
LoadedPart take_triplets(const OwnTriplets& triplets, Context& context, ValueType type = ValueType::f64);

}  // namespace shardmat
