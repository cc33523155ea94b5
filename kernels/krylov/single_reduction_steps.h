// Conjugate gradients with one sum over the ranks an iteration (Chronopoulos and Gear, s-step iterative methods for
// symmetric linear systems, 1989): s = A·p is updated as p is, so that r·z, the norm and z·A·z are summed together. One pass
// an iteration, which reads and writes 9 n values (11 n with a diagonal preconditioner): a vector more than in cg_steps.h.
//
// p·A·p comes from a recurrence, too: z·A·z − β²·(p·A·p before). Rounding errors may leave nothing of this difference. Then
// the direction begins anew with p = z, whose p·A·p is z·A·z itself.
#pragma once

#include "kernels/krylov/residual.h"

namespace shardmat::krylov {

/// Scalars in device memory, one entry a column.
struct SingleReductionScalars {
  double *rz, *squares, *zaz;  ///< REQUIRES: one after another, because one call sums them over the ranks
  double* rz_before;
  double *alpha, *beta;  ///< of the next update
};

template <class T, Scaling kScaling>
struct SingleReductionVectors {
  T *x, *p, *s;
  T* r;        ///< without a preconditioner in the product's x
  T* z;        ///< M·r in the product's x; unused without a preconditioner
  const T* w;  ///< A·z
  const T* scale;
  SingleReductionScalars scalars;
  Monitor monitor;
  Norm norm;

  SHARDMAT_BOTH T z_of(const Place& place, T of_r) const {
    if constexpr (kScaling == Scaling::separate) return z[place.at];
    else if constexpr (kScaling == Scaling::diagonal) return scale[place.item] * of_r;
    else return of_r;
  }
  /// Stores r with its z; returns their share of the sums.
  SHARDMAT_BOTH Sums<kScaling == Scaling::separate ? 0 : 2> put(const Place& place, T of_r) const {
    r[place.at] = of_r;
    if constexpr (kScaling == Scaling::separate) return {};
    else {
      const T of_z = z_of(place, of_r);
      if constexpr (kScaling == Scaling::diagonal) z[place.at] = of_z;
      const double rd = static_cast<double>(of_r), zd = static_cast<double>(of_z);
      return {{rd * zd, square(norm, rd, zd)}};
    }
  }
  SHARDMAT_BOTH void take(int column, const Sums<kScaling == Scaling::separate ? 0 : 2>& sums) const {
    if constexpr (kScaling != Scaling::separate) {
      scalars.rz[column] = sums.of[0];
      scalars.squares[column] = sums.of[1];
    }
  }
};

/// r = w, which holds the residual, and z; p = s = 0. If z is separate, ResidualSums makes the sums later.
template <class T, Scaling kScaling>
struct SingleReductionStart {
  SingleReductionVectors<T, kScaling> v;
  static constexpr int kSums = kScaling == Scaling::separate ? 0 : 2;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<kSums> entry(const Factors&, const Place& place) const {
    v.p[place.at] = v.s[place.at] = T(0);
    return v.put(place, v.w[place.at]);
  }
  SHARDMAT_BOTH void finish(int column, const Sums<kSums>& sums) const { v.take(column, sums); }
};

/// p = z + β·p, s = w + β·s, x += α·p, r -= α·s, and the next z with the sums.
template <class T, Scaling kScaling>
struct SingleReductionUpdate {
  SingleReductionVectors<T, kScaling> v;
  static constexpr int kSums = kScaling == Scaling::separate ? 0 : 2;
  struct Factors {
    bool works;
    T alpha, beta;
  };
  SHARDMAT_BOTH Factors factors(int column) const {
    return {v.monitor.goes_on(column), static_cast<T>(v.scalars.alpha[column]), static_cast<T>(v.scalars.beta[column])};
  }
  SHARDMAT_BOTH Sums<kSums> entry(const Factors& f, const Place& place) const {
    const T r = v.r[place.at];
    const T p = v.z_of(place, r) + f.beta * v.p[place.at], s = v.w[place.at] + f.beta * v.s[place.at];
    v.p[place.at] = p;
    v.s[place.at] = s;
    v.x[place.at] += f.alpha * p;
    return v.put(place, r - f.alpha * s);
  }
  SHARDMAT_BOTH void finish(int column, const Sums<kSums>& sums) const {
    if (!v.monitor.goes_on(column)) return;
    v.scalars.rz_before[column] = v.scalars.rz[column];
    v.take(column, sums);
  }
};

/// The factors of the first update, after z·A·z was summed over the ranks.
struct SingleReductionFirst : NoEntries {
  SingleReductionScalars scalars;
  Monitor monitor;
  SHARDMAT_BOTH void finish(int column, const Sums<0>&) const {
    if (!monitor.goes_on(column)) return;
    const double zaz = scalars.zaz[column];
    if (!(zaz > 0)) return monitor.stop(column, zaz <= 0 ? Reason::diverged_indefinite_matrix : Reason::diverged_nan);
    scalars.alpha[column] = scalars.rz[column] / zaz;
    scalars.beta[column] = 0;
  }
};

/// Ends the iteration, after the sums over the ranks; the factors of the next one.
struct SingleReductionNote : NoEntries {
  SingleReductionScalars scalars;
  Monitor monitor;
  double roundoff;  ///< unit roundoff of the vectors' type

  SHARDMAT_BOTH void finish(int column, const Sums<0>&) const {
    if (!monitor.goes_on(column)) return;
    constexpr double kRoundings = 64;  // a smaller p·A·p is not used
    const SingleReductionScalars& s = scalars;
    const double zaz = s.zaz[column], alpha = s.alpha[column];
    double beta = s.rz[column] / s.rz_before[column];
    const double before = beta * s.rz[column] / alpha;  // β²·(p·A·p before)
    double pap = zaz - before;
    const double size = zaz + before;
    const bool doubtful = zaz > 0 && pap <= kRoundings * roundoff * size && pap >= -sqrt(roundoff) * size;
    if (doubtful) beta = 0, pap = zaz;
    monitor.note_coefficients(column, alpha, s.beta[column]);
    monitor.note(column, sqrt(s.squares[column]));
    if (!monitor.goes_on(column)) return;
    if (!(s.rz[column] > 0)) return monitor.stop(column, Reason::diverged_indefinite_preconditioner);
    if (!(pap > 0)) return monitor.stop(column, pap <= 0 ? Reason::diverged_indefinite_matrix : Reason::diverged_nan);
    s.alpha[column] = s.rz[column] / pap;
    s.beta[column] = beta;
  }
};

}  // namespace shardmat::krylov

#define SHARDMAT_SINGLE_REDUCTION_STEPS(MAKE, T)    \
  MAKE(SingleReductionStart<T, Scaling::none>)      \
  MAKE(SingleReductionStart<T, Scaling::diagonal>)  \
  MAKE(SingleReductionStart<T, Scaling::separate>)  \
  MAKE(SingleReductionUpdate<T, Scaling::none>)     \
  MAKE(SingleReductionUpdate<T, Scaling::diagonal>) \
  MAKE(SingleReductionUpdate<T, Scaling::separate>)
#define SHARDMAT_SINGLE_REDUCTION_SCALAR_STEPS(MAKE) \
  MAKE(SingleReductionFirst)                         \
  MAKE(SingleReductionNote)
