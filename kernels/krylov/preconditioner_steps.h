// Diagonals and blocks around the diagonal as preconditioners.
#pragma once

#include "kernels/krylov/step.h"

namespace shardmat::krylov {

/// inverse = 1 / diagonal, its magnitude if `absolute`; 1 where the diagonal is 0. Sums: zeros, negative entries.
template <class T>
struct InvertDiagonal {
  const T* diagonal;
  T* inverse;
  bool absolute;
  double* counts;  ///< zeros, negative entries
  static constexpr int kSums = 2;
  struct Factors {
    bool works;
  };
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<2> entry(const Factors&, const Place& place) const {
    const T d = diagonal[place.at];
    const bool flips = absolute && d < 0;
    inverse[place.at] = d == T(0) ? T(1) : flips ? T(-1) / d : T(1) / d;
    return {{d == T(0) ? 1.0 : 0.0, d < 0 ? 1.0 : 0.0}};
  }
  SHARDMAT_BOTH void finish(int, const Sums<2>& sums) const {
    counts[0] = sums.of[0];
    counts[1] = sums.of[1];
  }
};

/// z = scale·r, one factor a row.
template <class T>
struct ScaleRows {
  const T *scale, *r;
  T* z;
  static constexpr int kSums = 0;
  struct Factors {
    bool works;
  };
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<0> entry(const Factors&, const Place& place) const {
    z[place.at] = scale[place.item] * r[place.at];
    return {};
  }
  SHARDMAT_BOTH void finish(int, const Sums<0>&) const {}
};

/// z = M·r for row-major blocks of kSize rows around the diagonal; an item is a block. Block b has the rows
/// places[kSize·b …], or kSize·b … if there are no places; rows from `rows` on are padding.
template <class T, int kSize>
struct MultiplyBlocks {
  const T *blocks, *r;
  T* z;
  const std::int64_t* places;
  std::int64_t rows;
  int columns;
  static constexpr int kSums = 0;
  struct Factors {
    bool works;
  };
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<0> entry(const Factors&, const Place& place) const {
    const std::int64_t first = place.item * kSize;
    T in[kSize];
    for (int j = 0; j < kSize; ++j) in[j] = first + j < rows ? r[at(first + j) * columns + place.column] : T(0);
    for (int i = 0; i < kSize; ++i) {
      T sum = 0;
      for (int j = 0; j < kSize; ++j) sum += blocks[(first + i) * kSize + j] * in[j];
      if (first + i < rows) z[at(first + i) * columns + place.column] = sum;
    }
    return {};
  }
  SHARDMAT_BOTH std::int64_t at(std::int64_t row) const { return places != nullptr ? places[row] : row; }
  SHARDMAT_BOTH void finish(int, const Sums<0>&) const {}
};

/// The sum of the magnitudes of a vector.
template <class T>
struct Magnitudes {
  const T* values;
  double* sum;
  static constexpr int kSums = 1;
  struct Factors {
    bool works;
  };
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<1> entry(const Factors&, const Place& place) const {
    const double v = static_cast<double>(values[place.at]);
    return {{v < 0 ? -v : v}};
  }
  SHARDMAT_BOTH void finish(int, const Sums<1>& sums) const { *sum = sums.of[0]; }
};

}  // namespace shardmat::krylov

#define SHARDMAT_PRECONDITIONER_STEPS(MAKE, T) \
  MAKE(InvertDiagonal<T>)                      \
  MAKE(ScaleRows<T>)                           \
  MAKE(MultiplyBlocks<T, 1>)                   \
  MAKE(MultiplyBlocks<T, 2>)                   \
  MAKE(MultiplyBlocks<T, 3>)                   \
  MAKE(MultiplyBlocks<T, 4>)                   \
  MAKE(MultiplyBlocks<T, 5>)                   \
  MAKE(MultiplyBlocks<T, 6>)                   \
  MAKE(Magnitudes<T>)
