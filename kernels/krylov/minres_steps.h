// Preconditioned MINRES (Paige and Saunders 1975; Elman, Silvester and Wathen, Finite Elements and Fast Iterative Solvers,
// 2nd ed., Alg. 4.1) in three passes an iteration. The residual vector is updated, too: r_j = s²·r_{j−1} +
// c·η_j·v_{j+1}/γ_{j+1}.
#pragma once

#include "kernels/krylov/residual.h"

namespace shardmat::krylov {

/// Scalars in device memory, one entry a column. γ are the roots of v·z.
struct MinresScalars {
  double* delta;    ///< z·A·z
  double* vz;       ///< of the next v
  double* squares;  ///< of the norm of r
  double *gamma, *gamma_before;
  double *eta, *c, *c_before, *s, *s_before;
  double* norm;  ///< the largest of the columns of the Lanczos matrix so far: at most that of M·A
};

template <class T, Scaling kScaling>
struct MinresVectors {
  T *x, *r, *q;
  T *v, *v_before;  ///< the next v takes the place of v_before
  T *w, *w_before;
  T* slot;         ///< z / γ, which the product reads
  const T* scale;  ///< diagonal
  const T* z;      ///< separate: M·(next v)
  MinresScalars scalars;
  Monitor monitor;
  Norm norm;
  double least = 0, singular = 0;  ///< see MinresUpdate::is_least()

  SHARDMAT_BOTH T z_of(const Place& place, T of_v) const {
    if constexpr (kScaling == Scaling::separate) return z[place.at];
    else if constexpr (kScaling == Scaling::diagonal) return scale[place.item] * of_v;
    else return of_v;
  }
};

/// v·z and the square of the norm, of v = r at the start; clears what came before.
template <class T, Scaling kScaling>
struct MinresStart {
  MinresVectors<T, kScaling> v;
  static constexpr int kSums = 2;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<2> entry(const Factors&, const Place& place) const {
    const T r = v.r[place.at];
    v.v[place.at] = r;
    v.v_before[place.at] = v.w[place.at] = v.w_before[place.at] = T(0);
    const double rd = static_cast<double>(r), z = static_cast<double>(v.z_of(place, r));
    return {{rd * z, square(v.norm, rd, z)}};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<2>& sums) const {
    v.scalars.vz[column] = sums.of[0];
    v.scalars.squares[column] = sums.of[1];
  }
};

/// slot = z / γ, and the scalars of the start.
template <class T, Scaling kScaling>
struct MinresFirst {
  MinresVectors<T, kScaling> v;
  static constexpr int kSums = 0;
  struct Factors {
    bool works;
    T inverse;
  };
  SHARDMAT_BOTH Factors factors(int column) const {
    const double vz = v.scalars.vz[column];
    return {true, static_cast<T>(vz > 0 ? 1 / sqrt(vz) : 0)};
  }
  SHARDMAT_BOTH Sums<0> entry(const Factors& f, const Place& place) const {
    v.slot[place.at] = f.inverse * v.z_of(place, v.v[place.at]);
    return {};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<0>&) const {
    const MinresScalars& s = v.scalars;
    const double gamma = s.vz[column] > 0 ? sqrt(s.vz[column]) : 0;
    s.gamma[column] = s.eta[column] = gamma;
    s.gamma_before[column] = 1;
    s.c[column] = s.c_before[column] = 1;
    s.s[column] = s.s_before[column] = s.norm[column] = 0;
  }
};

/// The next Lanczos vector, in the place of v_before; v·z unless z is separate.
template <class T, Scaling kScaling>
struct MinresLanczos {
  MinresVectors<T, kScaling> v;
  static constexpr int kSums = kScaling == Scaling::separate ? 0 : 1;
  struct Factors {
    bool works;
    T now, before;
  };
  SHARDMAT_BOTH Factors factors(int column) const {
    const MinresScalars& s = v.scalars;
    const double gamma = s.gamma[column];
    return {v.monitor.goes_on(column), static_cast<T>(gamma > 0 ? s.delta[column] / gamma : 0),
            static_cast<T>(gamma / s.gamma_before[column])};
  }
  SHARDMAT_BOTH Sums<kSums> entry(const Factors& f, const Place& place) const {
    const T next = v.q[place.at] - f.now * v.v[place.at] - f.before * v.v_before[place.at];
    v.v_before[place.at] = next;
    if constexpr (kSums == 0) return {};
    else return {{static_cast<double>(next) * static_cast<double>(v.z_of(place, next))}};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<kSums>& sums) const {
    if constexpr (kSums > 0)
      if (v.monitor.goes_on(column)) v.scalars.vz[column] = sums.of[0];
  }
};

/// v·z of the next v, where z was computed by passes of its own.
template <class T>
struct MinresProducts {
  const T *v_next, *z;
  double* vz;
  static constexpr int kSums = 1;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<1> entry(const Factors&, const Place& place) const {
    return {{static_cast<double>(v_next[place.at]) * static_cast<double>(z[place.at])}};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<1>& sums) const { vz[column] = sums.of[0]; }
};

/// w, x, r and the next slot; r·r.
template <class T, Scaling kScaling>
struct MinresUpdate {
  MinresVectors<T, kScaling> v;  ///< v.v_before holds the next v
  static constexpr int kSums = 1;

  struct Rotation {
    double gamma_next, alpha1, alpha2, alpha3, c, s, eta;
  };
  SHARDMAT_BOTH Rotation rotation(int column) const {
    const MinresScalars& k = v.scalars;
    Rotation r{};
    const double vz = k.vz[column], delta = k.delta[column], gamma = k.gamma[column];
    r.gamma_next = vz > 0 ? sqrt(vz) : 0;
    const double alpha0 = k.c[column] * delta - k.c_before[column] * k.s[column] * gamma;
    r.alpha1 = sqrt(alpha0 * alpha0 + r.gamma_next * r.gamma_next);
    r.alpha2 = k.s[column] * delta + k.c_before[column] * k.c[column] * gamma;
    r.alpha3 = k.s_before[column] * gamma;
    r.c = r.alpha1 > 0 ? alpha0 / r.alpha1 : 1;
    r.s = r.alpha1 > 0 ? r.gamma_next / r.alpha1 : 0;
    r.eta = -r.s * k.eta[column];
    return r;
  }
  SHARDMAT_BOTH double norm(int column) const {
    const double vz = v.scalars.vz[column], delta = v.scalars.delta[column];
    const double now = sqrt(delta * delta + (vz > 0 ? vz : 0)), before = v.scalars.norm[column];
    return now > before ? now : before;
  }
  /// The residual so far is that of least squares: with z = M·r of norm 1, ‖A·z‖ is at most `least` of ‖A‖, as Choi, Paige
  /// and Saunders stop (MINRES-QLP, 2011). Where the smallest eigenvalue is that small but not 0, z·A·z is of the size of
  /// ‖A·z‖. For a z that A maps to 0 it is about the square of that: at most `singular` of ‖A‖.
  SHARDMAT_BOTH bool is_least(int column) const {
    const MinresScalars& k = v.scalars;
    const double alpha0 = k.c[column] * k.delta[column] - k.c_before[column] * k.s[column] * k.gamma[column];
    const double vz = k.vz[column] > 0 ? k.vz[column] : 0, c = k.c[column], of_a = norm(column), zaz = alpha0 * c;
    return sqrt(alpha0 * alpha0 + c * c * vz) <= v.least * of_a && (zaz < 0 ? -zaz : zaz) <= v.singular * of_a;
  }
  struct Factors {
    bool works;
    T of_z, of_w, of_w_before, step, r_before, v_next, inverse;
  };
  SHARDMAT_BOTH Factors factors(int column) const {
    const Rotation r = rotation(column);
    const double inverse = r.gamma_next > 0 ? 1 / r.gamma_next : 0, a = r.alpha1 > 0 ? 1 / r.alpha1 : 0;
    return {v.monitor.goes_on(column) && !is_least(column),
            static_cast<T>(a),
            static_cast<T>(-r.alpha2 * a),
            static_cast<T>(-r.alpha3 * a),
            static_cast<T>(r.c * v.scalars.eta[column]),
            static_cast<T>(r.s * r.s),
            static_cast<T>(r.c * r.eta * inverse),
            static_cast<T>(inverse)};
  }
  SHARDMAT_BOTH Sums<1> entry(const Factors& f, const Place& place) const {
    const T w = f.of_z * v.slot[place.at] + f.of_w * v.w[place.at] + f.of_w_before * v.w_before[place.at];
    v.w_before[place.at] = w;
    v.x[place.at] += f.step * w;
    const T next = v.v_before[place.at];
    const T r = f.r_before * v.r[place.at] + f.v_next * next;
    v.r[place.at] = r;
    v.slot[place.at] = f.inverse * v.z_of(place, next);
    return {{static_cast<double>(r) * static_cast<double>(r)}};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<1>& sums) const {
    if (!v.monitor.goes_on(column)) return;
    const MinresScalars& k = v.scalars;
    if (k.vz[column] < 0) return v.monitor.stop(column, Reason::diverged_indefinite_preconditioner);
    if (is_least(column)) return v.monitor.stop(column, Reason::least_squares);
    const Rotation r = rotation(column);
    k.norm[column] = norm(column);
    k.gamma_before[column] = k.gamma[column], k.gamma[column] = r.gamma_next;
    k.c_before[column] = k.c[column], k.c[column] = r.c;
    k.s_before[column] = k.s[column], k.s[column] = r.s;
    k.eta[column] = r.eta;
    k.squares[column] = sums.of[0];
  }
};

/// The iteration ends, after r·r was summed over the ranks.
struct MinresNote : NoEntries {
  MinresScalars scalars;
  Monitor monitor;
  Norm norm;
  SHARDMAT_BOTH void finish(int column, const Sums<0>&) const {
    if (!monitor.goes_on(column)) return;
    const double eta = scalars.eta[column];
    monitor.note_coefficients(column, scalars.delta[column], scalars.gamma[column]);
    monitor.note(column, norm == Norm::unpreconditioned ? sqrt(scalars.squares[column]) : eta < 0 ? -eta : eta);
  }
};

}  // namespace shardmat::krylov

#define SHARDMAT_MINRES_STEPS(MAKE, T)      \
  MAKE(MinresStart<T, Scaling::none>)       \
  MAKE(MinresStart<T, Scaling::diagonal>)   \
  MAKE(MinresStart<T, Scaling::separate>)   \
  MAKE(MinresFirst<T, Scaling::none>)       \
  MAKE(MinresFirst<T, Scaling::diagonal>)   \
  MAKE(MinresFirst<T, Scaling::separate>)   \
  MAKE(MinresLanczos<T, Scaling::none>)     \
  MAKE(MinresLanczos<T, Scaling::diagonal>) \
  MAKE(MinresLanczos<T, Scaling::separate>) \
  MAKE(MinresProducts<T>)                   \
  MAKE(MinresUpdate<T, Scaling::none>)      \
  MAKE(MinresUpdate<T, Scaling::diagonal>)  \
  MAKE(MinresUpdate<T, Scaling::separate>)
#define SHARDMAT_MINRES_SCALAR_STEPS(MAKE) MAKE(MinresNote)
