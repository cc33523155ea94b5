// BiCGStab with right preconditioning (van der Vorst 1992; Saad, 2nd ed., Alg. 7.7) in five passes an iteration.
#pragma once

#include "kernels/krylov/residual.h"

namespace shardmat::krylov {

/// Scalars in device memory, one entry a column.
struct BicgstabScalars {
  double* rho;      ///< shadow·r
  double* squares;  ///< r·r. REQUIRES: squares == rho + columns
  double* shadows;  ///< shadow·shadow. REQUIRES: shadows == squares + columns
  double* sv;       ///< shadow·v
  double* vv;       ///< v·v. REQUIRES: vv == sv + columns
  double* ts;       ///< t·s
  double* tt;       ///< t·t. REQUIRES: tt == ts + columns
  double* rho_before;
  double *alpha, *omega;
};

template <class T, Scaling kScaling>
struct BicgstabVectors {
  T *x, *r, *shadow, *p, *v, *t;
  T* slot;           ///< what the product reads
  const T* scale;    ///< diagonal
  const T *mp, *ms;  ///< separate: M·p, M·s
  BicgstabScalars scalars;
  Monitor monitor;
  bool renewed = false;   ///< the shadow holds a vector already
  double below_rounding;  ///< the square of a cosine that cannot be told from 0

  /// a·b is 0 up to rounding.
  SHARDMAT_BOTH bool is_zero(double dot, double square_of_a, double square_of_b) const {
    return dot * dot <= below_rounding * square_of_a * square_of_b;
  }
  SHARDMAT_BOTH void spread(const Place& place, T value) const {
    if constexpr (kScaling == Scaling::none) slot[place.at] = value;
    if constexpr (kScaling == Scaling::diagonal) slot[place.at] = scale[place.item] * value;
  }
};

/// p = r at the start, and shadow = r unless it is renewed.
template <class T, Scaling kScaling>
struct BicgstabStart {
  BicgstabVectors<T, kScaling> v;
  static constexpr int kSums = 3;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<3> entry(const Factors&, const Place& place) const {
    const T r = v.r[place.at];
    if (!v.renewed) v.shadow[place.at] = r;
    v.p[place.at] = r;
    v.spread(place, r);
    const double rd = static_cast<double>(r), shadow = static_cast<double>(v.shadow[place.at]);
    return {{shadow * rd, rd * rd, shadow * shadow}};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<3>& sums) const {
    v.scalars.rho[column] = sums.of[0];
    v.scalars.squares[column] = sums.of[1];
    v.scalars.shadows[column] = sums.of[2];
  }
};

/// shadow·v and v·v.
template <class T>
struct BicgstabShadow {
  const T *shadow, *v;
  double *sv, *vv;
  static constexpr int kSums = 2;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<2> entry(const Factors&, const Place& place) const {
    const double v_at = static_cast<double>(v[place.at]);
    return {{static_cast<double>(shadow[place.at]) * v_at, v_at * v_at}};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<2>& sums) const {
    sv[column] = sums.of[0];
    vv[column] = sums.of[1];
  }
};

/// s = r − alpha·v, which takes the place of r.
template <class T, Scaling kScaling>
struct BicgstabHalf {
  BicgstabVectors<T, kScaling> v;
  static constexpr int kSums = 0;
  struct Factors {
    bool works;
    T alpha;
  };
  SHARDMAT_BOTH double alpha(int column) const { return v.scalars.rho[column] / v.scalars.sv[column]; }
  SHARDMAT_BOTH bool breaks_down(int column) const {
    return v.is_zero(v.scalars.sv[column], v.scalars.shadows[column], v.scalars.vv[column]);
  }
  SHARDMAT_BOTH Factors factors(int column) const {
    return {v.monitor.goes_on(column) && !breaks_down(column), static_cast<T>(alpha(column))};
  }
  SHARDMAT_BOTH Sums<0> entry(const Factors& f, const Place& place) const {
    const T s = v.r[place.at] - f.alpha * v.v[place.at];
    v.r[place.at] = s;
    v.spread(place, s);
    return {};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<0>&) const {
    if (!v.monitor.goes_on(column)) return;
    if (breaks_down(column)) return v.monitor.stop(column, Reason::diverged_breakdown);
    v.scalars.alpha[column] = alpha(column);
  }
};

/// t·s and t·t.
template <class T>
struct BicgstabStabilise {
  const T *t, *s;
  double *ts, *tt;
  static constexpr int kSums = 2;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<2> entry(const Factors&, const Place& place) const {
    const double t_at = static_cast<double>(t[place.at]);
    return {{t_at * static_cast<double>(s[place.at]), t_at * t_at}};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<2>& sums) const {
    ts[column] = sums.of[0];
    tt[column] = sums.of[1];
  }
};

/// x += alpha·M·p + omega·M·s; r = s − omega·t, and the sums of the new r.
template <class T, Scaling kScaling>
struct BicgstabResidual {
  BicgstabVectors<T, kScaling> v;
  static constexpr int kSums = 2;
  struct Factors {
    bool works;
    T alpha, omega;
  };
  SHARDMAT_BOTH double omega(int column) const {
    return v.scalars.tt[column] > 0 ? v.scalars.ts[column] / v.scalars.tt[column] : 0;
  }
  SHARDMAT_BOTH Factors factors(int column) const {
    return {v.monitor.goes_on(column), static_cast<T>(v.scalars.alpha[column]), static_cast<T>(omega(column))};
  }
  SHARDMAT_BOTH Sums<2> entry(const Factors& f, const Place& place) const {
    const T s = v.r[place.at];
    if constexpr (kScaling == Scaling::separate) {
      v.x[place.at] += f.alpha * v.mp[place.at] + f.omega * v.ms[place.at];
    } else {
      const T step = f.alpha * v.p[place.at] + f.omega * s;
      v.x[place.at] += kScaling == Scaling::diagonal ? v.scale[place.item] * step : step;
    }
    const T r = s - f.omega * v.t[place.at];
    v.r[place.at] = r;
    const double rd = static_cast<double>(r);
    return {{static_cast<double>(v.shadow[place.at]) * rd, rd * rd}};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<2>& sums) const {
    if (!v.monitor.goes_on(column)) return;
    const BicgstabScalars& s = v.scalars;
    s.omega[column] = omega(column);
    s.rho_before[column] = s.rho[column];
    s.rho[column] = sums.of[0];
    s.squares[column] = sums.of[1];
  }
};

/// p = r + beta·(p − omega·v); ends the iteration.
template <class T, Scaling kScaling>
struct BicgstabDirection {
  BicgstabVectors<T, kScaling> v;
  static constexpr int kSums = 0;
  struct Factors {
    bool works;
    T beta, omega;
  };
  SHARDMAT_BOTH Factors factors(int column) const {
    const BicgstabScalars& s = v.scalars;
    const double beta = s.rho[column] / s.rho_before[column] * (s.alpha[column] / s.omega[column]);
    return {v.monitor.goes_on(column) && s.omega[column] != 0, static_cast<T>(beta), static_cast<T>(s.omega[column])};
  }
  SHARDMAT_BOTH Sums<0> entry(const Factors& f, const Place& place) const {
    const T p = v.r[place.at] + f.beta * (v.p[place.at] - f.omega * v.v[place.at]);
    v.p[place.at] = p;
    v.spread(place, p);
    return {};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<0>&) const {
    if (!v.monitor.goes_on(column)) return;
    v.monitor.note(column, sqrt(v.scalars.squares[column]));
    const BicgstabScalars& s = v.scalars;
    if (v.monitor.goes_on(column) && (v.is_zero(s.ts[column], s.tt[column], s.squares[column]) ||
                                      v.is_zero(s.rho[column], s.shadows[column], s.squares[column])))
      v.monitor.stop(column, Reason::diverged_breakdown);
  }
};

}  // namespace shardmat::krylov

#define SHARDMAT_BICGSTAB_STEPS(MAKE, T)        \
  MAKE(BicgstabStart<T, Scaling::none>)         \
  MAKE(BicgstabStart<T, Scaling::diagonal>)     \
  MAKE(BicgstabStart<T, Scaling::separate>)     \
  MAKE(BicgstabShadow<T>)                       \
  MAKE(BicgstabHalf<T, Scaling::none>)          \
  MAKE(BicgstabHalf<T, Scaling::diagonal>)      \
  MAKE(BicgstabHalf<T, Scaling::separate>)      \
  MAKE(BicgstabStabilise<T>)                    \
  MAKE(BicgstabResidual<T, Scaling::none>)      \
  MAKE(BicgstabResidual<T, Scaling::diagonal>)  \
  MAKE(BicgstabResidual<T, Scaling::separate>)  \
  MAKE(BicgstabDirection<T, Scaling::none>)     \
  MAKE(BicgstabDirection<T, Scaling::diagonal>) \
  MAKE(BicgstabDirection<T, Scaling::separate>)
