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
  static constexpr int kWork = kSize * (kSize + 4) / 4;
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

/// Two visits of a level. With the x of the first and the second visit c and d, v = A·c and w = A·d, and a dot product
/// (·,·): x = c·(c, r)/(c, v) at first; with the residual s that it leaves, d is made orthogonal to c in the sense of A.
template <class T>
struct TwoVisits {
  T *r, *x;
  T *kept_r, *first, *a_first, *a_second;
  int columns;
  double* sums;      ///< three for each column at the first visit, then three at the second; null: x = c + d
  bool by_residual;  ///< dot products with A·c and A·d in place of c and d: the residual becomes smallest

  double* first_sums() const { return sums; }
  double* second_sums() const { return sums + 3 * columns; }
  /// The share of c that the first visit takes.
  SHARDMAT_BOTH double first_share(int column) const {
    if (sums == nullptr) return 1;
    const double square = sums[column], with_r = sums[columns + column];
    return square > 0 ? with_r / square : 0;
  }
  struct Shares {
    bool works;
    T first, second;
  };
  SHARDMAT_BOTH Shares shares(int column) const {
    if (sums == nullptr) return {true, T(1), T(1)};
    const double* const second = sums + 3 * columns;
    const double square_of_first = sums[column], square = second[column], with_s = second[columns + column],
                 common = second[2 * columns + column], before = first_share(column),
                 part = square_of_first > 0 ? common / square_of_first : 0, left = square - part * common;
    if (!(left > 1e-6 * square)) return {true, static_cast<T>(before), T(0)};  // d says nothing that c does not
    const double share = with_s / left;
    return {true, static_cast<T>(before - share * part), static_cast<T>(share)};
  }
};

/// (c, v), (c, r).
template <class T>
struct FirstVisitSums {
  TwoVisits<T> v;
  static constexpr int kSums = 2;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<2> entry(const Factors&, const Place& place) const {
    const auto a = static_cast<double>(v.a_first[place.at]), left = v.by_residual ? a : static_cast<double>(v.x[place.at]);
    return {{left * a, left * static_cast<double>(v.kept_r[place.at])}};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<2>& sums) const {
    v.sums[column] = sums.of[0], v.sums[v.columns + column] = sums.of[1];
  }
};

/// Keeps c; r = r − share·v.
template <class T>
struct FirstVisit {
  TwoVisits<T> v;
  static constexpr int kSums = 0;
  struct Factors {
    bool works;
    T share;
  };
  SHARDMAT_BOTH Factors factors(int column) const { return {true, static_cast<T>(v.first_share(column))}; }
  SHARDMAT_BOTH Sums<0> entry(const Factors& f, const Place& place) const {
    v.first[place.at] = v.x[place.at];
    v.kept_r[place.at] = v.r[place.at] = v.kept_r[place.at] - f.share * v.a_first[place.at];
    return {};
  }
  SHARDMAT_BOTH void finish(int, const Sums<0>&) const {}
};

/// (d, w), (d, s), (d, v).
template <class T>
struct SecondVisitSums {
  TwoVisits<T> v;
  static constexpr int kSums = 8;  // as GPUs have it
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<8> entry(const Factors&, const Place& place) const {
    const auto a = static_cast<double>(v.a_second[place.at]), left = v.by_residual ? a : static_cast<double>(v.x[place.at]);
    return {{left * a, left * static_cast<double>(v.kept_r[place.at]), left * static_cast<double>(v.a_first[place.at])}};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<8>& sums) const {
    for (int i = 0; i < 3; ++i) v.sums[(3 + i) * v.columns + column] = sums.of[i];
  }
};

/// x = share of c + share of d.
template <class T>
struct CombineVisits {
  TwoVisits<T> v;
  static constexpr int kSums = 0;
  using Factors = typename TwoVisits<T>::Shares;
  SHARDMAT_BOTH Factors factors(int column) const { return v.shares(column); }
  SHARDMAT_BOTH Sums<0> entry(const Factors& f, const Place& place) const {
    v.x[place.at] = f.first * v.first[place.at] + f.second * v.x[place.at];
    return {};
  }
  SHARDMAT_BOTH void finish(int, const Sums<0>&) const {}
};

}  // namespace shardmat::krylov

#define SHARDMAT_MULTIGRID_STEPS(MAKE, T) \
  MAKE(ConvertVector<T, float>)           \
  MAKE(ConvertVector<T, double>)          \
  MAKE(FirstVisitSums<T>)                 \
  MAKE(FirstVisit<T>)                     \
  MAKE(SecondVisitSums<T>)                \
  MAKE(CombineVisits<T>)                  \
  MAKE(SmoothBlocks<T, 1>)                \
  MAKE(SmoothBlocks<T, 2>)                \
  MAKE(SmoothBlocks<T, 3>)                \
  MAKE(SmoothBlocks<T, 4>)                \
  MAKE(SmoothBlocks<T, 5>)                \
  MAKE(SmoothBlocks<T, 6>)                \
  MAKE(SmoothBlocks<T, 7>)                \
  MAKE(SmoothBlocks<T, 8>)                \
  MAKE(SmoothBlocks<T, 9>)                \
  MAKE(SmoothBlocks<T, 10>)               \
  MAKE(SmoothBlocks<T, 11>)               \
  MAKE(SmoothBlocks<T, 12>)
