// Passes of a multigrid cycle over the vectors of a level.
#pragma once

#include "kernels/krylov/step.h"

namespace shardmat::krylov {

/// to = factor·from, from one type to another, and from one order of rows to another: row i of `from` is from_rows[i], row i
/// of `to` is to_rows[i]; null: it is row i.
template <class From, class To>
struct ConvertVector {
  const From* from;
  To* to;
  double factor;
  const std::int64_t *from_rows, *to_rows;
  int columns;
  static constexpr int kSums = 0;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<0> entry(const Factors&, const Place& place) const {
    to[at(to_rows, place)] = static_cast<To>(factor * static_cast<double>(from[at(from_rows, place)]));
    return {};
  }
  SHARDMAT_BOTH std::int64_t at(const std::int64_t* rows, const Place& place) const {
    return rows == nullptr ? place.at : rows[place.item] * columns + place.column;
  }
  SHARDMAT_BOTH void finish(int, const Sums<0>&) const {}
};

/// What a step of the smoother finds in x and d.
enum class Before {
  nothing,     ///< x is 0: it becomes the step
  correction,  ///< d is a correction of x that x does not have yet
  step,        ///< d is the step before, and x has it
};

/// A step of the Chebyshev iteration with the inverses M of the blocks on A's diagonal (Saad, Iterative Methods for Sparse
/// Linear Systems, 2nd ed., 12.3.2): d = a·M·r + b·d, x = x + d. r is the residual of x. An item is a block of kSize rows.
template <class T, int kSize>
struct SmoothBlocks {
  const T *blocks, *r;
  T *d, *x;
  int columns;
  T a, b;
  Before before;
  static constexpr int kSums = 0;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<0> entry(const Factors&, const Place& place) const {
    const std::int64_t first = place.item * kSize;
    T in[kSize];
    for (int j = 0; j < kSize; ++j) in[j] = r[(first + j) * columns + place.column];
    for (int i = 0; i < kSize; ++i) {
      T sum = 0;
      for (int j = 0; j < kSize; ++j) sum += blocks[(first + i) * kSize + j] * in[j];
      const std::int64_t to = (first + i) * columns + place.column;
      const T step = before == Before::step ? a * sum + b * d[to] : a * sum;
      x[to] = before == Before::nothing ? step : before == Before::correction ? x[to] + d[to] + step : x[to] + step;
      d[to] = step;
    }
    return {};
  }
  SHARDMAT_BOTH void finish(int, const Sums<0>&) const {}
};

}  // namespace shardmat::krylov

#define SHARDMAT_MULTIGRID_STEPS(MAKE, T) \
  MAKE(ConvertVector<T, float>)           \
  MAKE(ConvertVector<T, double>)          \
  MAKE(SmoothBlocks<T, 1>)                \
  MAKE(SmoothBlocks<T, 2>)                \
  MAKE(SmoothBlocks<T, 3>)                \
  MAKE(SmoothBlocks<T, 4>)                \
  MAKE(SmoothBlocks<T, 5>)                \
  MAKE(SmoothBlocks<T, 6>)
