// Which entries incomplete factors have.
//
// Threads: values; nothing here is collective.
#pragma once

#include "runtime/solvers/incomplete/order.h"
#include "runtime/solvers/loop/preconditioner.h"

namespace shardmat::incomplete {

/// Rows of L, the diagonal and U together, in the order of elimination.
struct Pattern {
  HostVector<std::int64_t> start{0};
  HostVector<std::int32_t> column;    ///< positions, ascending in each row
  HostVector<std::int64_t> diagonal;  ///< where it stands, of each row

  std::int64_t blocks() const { return std::ssize(column); }
};

/// That of `a`, and fill as the options say; by levels as in Saad, Iterative Methods for Sparse Linear Systems, 2nd ed.,
/// 10.3.3, with a drop tolerance about as in 10.4. `symmetric`: so is the matrix, and the pattern becomes it.
Pattern find_pattern(const SquareRows& a, const Order& order, const FactorOptions& options, bool symmetric);

}  // namespace shardmat::incomplete
