// p·q of a direction p and q = A·p: from the vectors, or from the parts that the product left (Plan::multiply_with_dot()).
#pragma once

#include "kernels/krylov/step.h"

namespace shardmat::krylov {

template <class T>
struct Curvature {
  const T *p, *q;
  double* pq;
  static constexpr bool kBackward = true;
  static constexpr int kSums = 1;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<1> entry(const Factors&, const Place& place) const {
    return {{static_cast<double>(p[place.at]) * static_cast<double>(q[place.at])}};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<1>& sums) const { pq[column] = sums.of[0]; }
};

/// Of one column; an item is a part.
struct SumOfParts {
  const double* parts;
  double* pq;
  static constexpr int kSums = 1;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<1> entry(const Factors&, const Place& place) const { return {{parts[place.item]}}; }
  SHARDMAT_BOTH void finish(int column, const Sums<1>& sums) const { pq[column] = sums.of[0]; }
};

}  // namespace shardmat::krylov

#define SHARDMAT_CURVATURE_STEPS(MAKE, T) MAKE(Curvature<T>)
#define SHARDMAT_CURVATURE_SCALAR_STEPS(MAKE) MAKE(SumOfParts)
