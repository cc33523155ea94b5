// Where the rows of a source go when they are read into arrays of the caller (RowSource::read_rows_into()).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "kernels/base/types.h"
#include "kernels/matrix/csr.h"

namespace shardmat {

/// Arrays for the nonzeros of consecutive rows, which may lie there in any order of the rows. Owns nothing.
struct RowTarget {
  std::span<const std::int64_t> lengths;  ///< nonzeros of each row
  std::span<const std::int64_t> places;   ///< where the first nonzero of each row goes
  /// One of each pair is null. REQUIRES for narrow columns: the source has at most 2^31 columns.
  std::int32_t* narrow_columns = nullptr;
  std::int64_t* wide_columns = nullptr;
  float* narrow_values = nullptr;
  double* wide_values = nullptr;
  /// Values beyond the range of this type are refused. Narrow values are f32.
  ValueType type = ValueType::f64;

  /// Returns use(columns, values) with pointers to the arrays of this target.
  template <class Use>
  decltype(auto) visit(const Use& use) const {
    if (narrow_columns != nullptr)
      return narrow_values != nullptr ? use(narrow_columns, narrow_values) : use(narrow_columns, wide_values);
    return narrow_values != nullptr ? use(wide_columns, narrow_values) : use(wide_columns, wide_values);
  }
};

/// Throws Error(input) unless `row_ptr` gives the rows from target row `first` on the lengths of the target. `first_row` is
/// the number of the target's first row and `source` the name of the matrix, for messages.
void require_lengths(std::span<const std::int64_t> row_ptr, std::int64_t first, std::int64_t first_row,
                     const RowTarget& target, const std::string& source);

/// Copies the rows of a slice to the target rows from `first` on. Parallel. Throws as require_lengths(), and Error(input)
/// for values beyond the range of target.type.
void put_rows(const CsrView& slice, std::int64_t first, std::int64_t first_row, const RowTarget& target,
              const std::string& source);

}  // namespace shardmat
