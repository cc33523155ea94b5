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
  using Factors = Works;
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
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<0> entry(const Factors&, const Place& place) const {
    z[place.at] = scale[place.item] * r[place.at];
    return {};
  }
  SHARDMAT_BOTH void finish(int, const Sums<0>&) const {}
};

/// Zeros the rows `places` of a row-major matrix; an item is one of them.
template <class T>
struct ClearRows {
  const std::int64_t* places;
  T* y;
  std::int64_t leading;
  static constexpr int kSums = 0;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<0> entry(const Factors&, const Place& place) const {
    y[places[place.item] * leading + place.column] = T(0);
    return {};
  }
  SHARDMAT_BOTH void finish(int, const Sums<0>&) const {}
};

/// Inverts row-major blocks of kSize rows in place, by Gauss-Jordan elimination with partial pivoting in f64; an item is a
/// block. Rows from `rows` on are padding. A singular block becomes the identity. The sum counts these.
template <class T, int kSize>
struct InvertBlocks {
  T* blocks;
  std::int64_t rows;
  double* singular;
  static constexpr int kSums = 1;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<1> entry(const Factors&, const Place& place) const {
    T* const block = blocks + place.item * (kSize * kSize);
    double a[kSize][kSize], inverse[kSize][kSize];
    for (int i = 0; i < kSize; ++i)
      for (int j = 0; j < kSize; ++j) {
        const bool padding = place.item * kSize + i >= rows || place.item * kSize + j >= rows;
        a[i][j] = padding ? (i == j ? 1 : 0) : static_cast<double>(block[i * kSize + j]);
        inverse[i][j] = i == j ? 1 : 0;
      }
    bool regular = true;
    for (int column = 0; column < kSize; ++column) {
      int pivot = column;
      for (int i = column + 1; i < kSize; ++i)
        if (magnitude(a[i][column]) > magnitude(a[pivot][column])) pivot = i;
      regular = regular && magnitude(a[pivot][column]) > 0;
      const double factor = regular ? 1 / a[pivot][column] : 1;
      for (int j = 0; j < kSize; ++j) {
        const double of_a = a[pivot][j], of_inverse = inverse[pivot][j];
        a[pivot][j] = a[column][j], inverse[pivot][j] = inverse[column][j];
        a[column][j] = factor * of_a, inverse[column][j] = factor * of_inverse;
      }
      for (int i = 0; i < kSize; ++i) {
        if (i == column) continue;
        const double times = a[i][column];
        for (int j = 0; j < kSize; ++j) a[i][j] -= times * a[column][j], inverse[i][j] -= times * inverse[column][j];
      }
    }
    for (int i = 0; i < kSize; ++i)
      for (int j = 0; j < kSize; ++j) block[i * kSize + j] = static_cast<T>(regular ? inverse[i][j] : i == j ? 1 : 0);
    return {{regular ? 0.0 : 1.0}};
  }
  SHARDMAT_BOTH static double magnitude(double value) { return value < 0 ? -value : value; }
  SHARDMAT_BOTH void finish(int, const Sums<1>& sums) const { *singular = sums.of[0]; }
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
  using Factors = Works;
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

/// One step of the Chebyshev iteration for D·A·z = D·r, where D is a diagonal (or none): d = a·D·(r − q) + b·d, z += d.
/// `slot`: what the next product reads.
template <class T>
struct ChebyshevStep {
  const T *r, *q;  ///< q = A·z of the step before; null in the first step
  T *z, *d, *slot;
  const T* scale;  ///< one entry a row; or null
  T a, b;
  static constexpr int kSums = 0;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<0> entry(const Factors&, const Place& place) const {
    const T residual = q != nullptr ? r[place.at] - q[place.at] : r[place.at];
    const T scaled = scale != nullptr ? scale[place.item] * residual : residual;
    const T step = q != nullptr ? a * scaled + b * d[place.at] : a * scaled;
    const T now = q != nullptr ? z[place.at] + step : step;
    d[place.at] = step;
    z[place.at] = now;
    slot[place.at] = now;
    return {};
  }
  SHARDMAT_BOTH void finish(int, const Sums<0>&) const {}
};

/// The sum of the magnitudes of a vector.
template <class T>
struct Magnitudes {
  const T* values;
  double* sum;
  static constexpr int kSums = 1;
  using Factors = Works;
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
  MAKE(ClearRows<T>)                           \
  MAKE(InvertBlocks<T, 1>)                     \
  MAKE(InvertBlocks<T, 2>)                     \
  MAKE(InvertBlocks<T, 3>)                     \
  MAKE(InvertBlocks<T, 4>)                     \
  MAKE(InvertBlocks<T, 5>)                     \
  MAKE(InvertBlocks<T, 6>)                     \
  MAKE(MultiplyBlocks<T, 1>)                   \
  MAKE(MultiplyBlocks<T, 2>)                   \
  MAKE(MultiplyBlocks<T, 3>)                   \
  MAKE(MultiplyBlocks<T, 4>)                   \
  MAKE(MultiplyBlocks<T, 5>)                   \
  MAKE(MultiplyBlocks<T, 6>)                   \
  MAKE(ChebyshevStep<T>)                       \
  MAKE(Magnitudes<T>)
