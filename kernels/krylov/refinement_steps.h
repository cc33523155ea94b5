// Iterative refinement: x += z with z = M·r, until r is small enough or becomes no smaller.
#pragma once

#include "kernels/krylov/residual.h"

namespace shardmat::krylov {

/// Scalars in device memory, one entry a column.
struct RefinementScalars {
  double* squares;  ///< of the norm of r
  double* before;   ///< that norm before this iteration
};

/// The square of the norm of the first residual.
template <class T>
struct RefinementStart {
  const T* r;
  RefinementScalars scalars;
  static constexpr int kSums = 1;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<1> entry(const Factors&, const Place& place) const {
    const double r_at = static_cast<double>(r[place.at]);
    return {{r_at * r_at}};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<1>& sums) const { scalars.squares[column] = sums.of[0]; }
};

/// x += z, r -= q with q = A·z.
template <class T>
struct RefinementStep {
  T *x, *r;
  const T *z, *q;
  RefinementScalars scalars;
  Monitor monitor;
  static constexpr int kSums = 1;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int column) const { return {monitor.goes_on(column)}; }
  SHARDMAT_BOTH Sums<1> entry(const Factors&, const Place& place) const {
    x[place.at] += z[place.at];
    const T left = r[place.at] - q[place.at];
    r[place.at] = left;
    return {{static_cast<double>(left) * static_cast<double>(left)}};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<1>& sums) const {
    if (!monitor.goes_on(column)) return;
    scalars.before[column] = sqrt(scalars.squares[column]);
    scalars.squares[column] = sums.of[0];
  }
};

/// The iteration ends, after the square of the norm was summed over the ranks. A residual that is not halved claims to be
/// as small as it becomes: the loop computes it anew, and judges.
struct RefinementNote : NoEntries {
  RefinementScalars scalars;
  Monitor monitor;
  SHARDMAT_BOTH void finish(int column, const Sums<0>&) const {
    if (!monitor.goes_on(column)) return;
    const double now = sqrt(scalars.squares[column]);
    monitor.note(column, now);
    if (monitor.goes_on(column) && !(now <= scalars.before[column] / 2)) monitor.stop(column, Reason::converged);
  }
};

}  // namespace shardmat::krylov

#define SHARDMAT_REFINEMENT_STEPS(MAKE, T) \
  MAKE(RefinementStart<T>)                 \
  MAKE(RefinementStep<T>)
#define SHARDMAT_REFINEMENT_SCALAR_STEPS(MAKE) MAKE(RefinementNote)
