// Chebyshev iteration (Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., Alg. 12.1) for spectra in an interval.
#pragma once

#include "kernels/krylov/residual.h"

namespace shardmat::krylov {

/// Scalars in device memory, one entry a column.
struct ChebyshevScalars {
  double* rho;
  double* squares;  ///< of the norm of r
};

/// The next step is of_d·d + of_z·z.
template <class T>
struct ChebyshevFactors {
  bool works;
  T of_d, of_z;
};

template <class T, Scaling kScaling>
struct ChebyshevVectors : Preconditioned<T, kScaling> {
  T *x, *q, *d;  ///< d: the step, which the product reads
  ChebyshevScalars scalars;
  Monitor monitor;
  Norm norm;
  double theta, delta;  ///< centre and half width of the interval

  SHARDMAT_BOTH double next_rho(int column) const { return 1 / (2 * theta / delta - scalars.rho[column]); }
  SHARDMAT_BOTH ChebyshevFactors<T> factors(int column) const {
    return {monitor.goes_on(column), static_cast<T>(next_rho(column) * scalars.rho[column]),
            static_cast<T>(2 * next_rho(column) / delta)};
  }
};

/// The square of the norm of r.
template <class T, Scaling kScaling>
struct ChebyshevNorm {
  ChebyshevVectors<T, kScaling> v;
  static constexpr int kSums = 1;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<1> entry(const Factors&, const Place& place) const {
    const double r = static_cast<double>(v.r[place.at]);
    return {{square(v.norm, r, static_cast<double>(v.z_at(place)))}};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<1>& sums) const { v.scalars.squares[column] = sums.of[0]; }
};

/// The first step: d = z / θ, x += d.
template <class T, Scaling kScaling>
struct ChebyshevFirst {
  ChebyshevVectors<T, kScaling> v;
  static constexpr int kSums = 0;
  struct Factors {
    bool works;
    T a;
  };
  SHARDMAT_BOTH Factors factors(int) const { return {true, static_cast<T>(1 / v.theta)}; }
  SHARDMAT_BOTH Sums<0> entry(const Factors& f, const Place& place) const {
    v.d[place.at] = f.a * v.z_at(place);
    return {};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<0>&) const { v.scalars.rho[column] = v.delta / v.theta; }
};

/// x += d, r -= q; the square of the norm unless z is separate.
template <class T, Scaling kScaling>
struct ChebyshevResidual {
  ChebyshevVectors<T, kScaling> v;
  static constexpr int kSums = kScaling == Scaling::separate ? 0 : 1;
  using Factors = ChebyshevFactors<T>;
  SHARDMAT_BOTH Factors factors(int column) const { return v.factors(column); }
  SHARDMAT_BOTH Sums<kSums> entry(const Factors& f, const Place& place) const {
    const T d = v.d[place.at];
    v.x[place.at] += d;
    const T r = v.r[place.at] - v.q[place.at];
    v.r[place.at] = r;
    if constexpr (kSums == 0) return {};
    else {
      const T z = v.z_of(place, r);  // the next step depends on no sum, so this pass takes it
      v.d[place.at] = f.of_d * d + f.of_z * z;
      const double rd = static_cast<double>(r);
      return {{square(v.norm, rd, static_cast<double>(z))}};
    }
  }
  SHARDMAT_BOTH void finish(int column, const Sums<kSums>& sums) const {
    if constexpr (kSums > 0) {
      if (!v.monitor.goes_on(column)) return;
      v.scalars.rho[column] = v.next_rho(column);
      v.scalars.squares[column] = sums.of[0];
    }
  }
};

/// The next step and the square of the norm, for a separate z.
template <class T>
struct ChebyshevDirection {
  ChebyshevVectors<T, Scaling::separate> v;
  static constexpr int kSums = 1;
  using Factors = ChebyshevFactors<T>;
  SHARDMAT_BOTH Factors factors(int column) const { return v.factors(column); }
  SHARDMAT_BOTH Sums<1> entry(const Factors& f, const Place& place) const {
    const T z = v.z[place.at];
    v.d[place.at] = f.of_d * v.d[place.at] + f.of_z * z;
    return {{square(v.norm, static_cast<double>(v.r[place.at]), static_cast<double>(z))}};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<1>& sums) const {
    if (!v.monitor.goes_on(column)) return;
    v.scalars.rho[column] = v.next_rho(column);
    v.scalars.squares[column] = sums.of[0];
  }
};

/// The iteration ends, after the square of the norm was summed over the ranks.
struct ChebyshevNote : NoEntries {
  const double* squares;
  Monitor monitor;
  SHARDMAT_BOTH void finish(int column, const Sums<0>&) const {
    if (monitor.goes_on(column)) monitor.note(column, sqrt(squares[column]));
  }
};

}  // namespace shardmat::krylov

#define SHARDMAT_CHEBYSHEV_STEPS(MAKE, T)       \
  MAKE(ChebyshevNorm<T, Scaling::none>)         \
  MAKE(ChebyshevNorm<T, Scaling::diagonal>)     \
  MAKE(ChebyshevNorm<T, Scaling::separate>)     \
  MAKE(ChebyshevFirst<T, Scaling::none>)        \
  MAKE(ChebyshevFirst<T, Scaling::diagonal>)    \
  MAKE(ChebyshevFirst<T, Scaling::separate>)    \
  MAKE(ChebyshevResidual<T, Scaling::none>)     \
  MAKE(ChebyshevResidual<T, Scaling::diagonal>) \
  MAKE(ChebyshevResidual<T, Scaling::separate>) \
  MAKE(ChebyshevDirection<T>)
#define SHARDMAT_CHEBYSHEV_SCALAR_STEPS(MAKE) MAKE(ChebyshevNote)
