// Conjugate gradients (Hestenes and Stiefel 1952; Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., Alg. 9.1) in
// two passes an iteration: the residual with its sums; x and the direction. They read and write 8 n values (10 n with a
// diagonal preconditioner); p·q takes 2 n more where the product does not sum it (curvature_steps.h).
//
// Where M takes passes of its own and ‖r‖ decides, an iteration begins with z = M·r and the direction and ends with ‖r‖ (11
// n values): the last one is known as such before it would apply M for nothing.
//
// The flexible variant takes beta = −z·q / p·q in place of r·z / (r·z before): as q is A·p, the next direction is conjugate
// to p whatever z is (Golub and Ye, Inexact preconditioned conjugate gradient method with inner-outer iteration, 1999).
#pragma once

#include "kernels/krylov/residual.h"

namespace shardmat::krylov {

/// Scalars in device memory, one entry a column.
struct CgScalars {
  double* pq;
  double* rz;
  double* squares;  ///< of the norm. REQUIRES: squares == rz + columns, because one call sums both over the ranks
  double* rz_before;
  double* alpha;
  double* turn;          ///< beta of the present direction, 0 of the first one
  double* next_squares;  ///< of the norm, where the iteration begins with M·r
  double* zq = nullptr;  ///< z·q, of the flexible variant alone. REQUIRES: zq == squares + columns, for the same reason

  SHARDMAT_BOTH double beta(int column) const {
    return zq != nullptr ? -zq[column] / pq[column] : rz[column] / rz_before[column];
  }
};

template <class T, Scaling kScaling>
struct CgVectors : Preconditioned<T, kScaling> {
  T *x, *p, *q;
  CgScalars scalars;
  Monitor monitor;
  Norm norm;

  /// The next direction has this beta. Stops where r·z says that M is not positive definite.
  SHARDMAT_BOTH void turn(int column, double beta) const {
    scalars.turn[column] = beta;
    if (monitor.goes_on(column) && !(scalars.rz[column] > 0))
      monitor.stop(column, Reason::diverged_indefinite_preconditioner);
  }
};

/// r -= alpha·q with alpha = r·z / p·q, and the sums of the new r. If z is separate, CgSums makes them later.
template <class T, Scaling kScaling>
struct CgResidual {
  CgVectors<T, kScaling> v;
  static constexpr int kSums = kScaling == Scaling::separate ? 0 : 2;
  struct Factors {
    bool works;
    T alpha;
  };
  SHARDMAT_BOTH double alpha(int column) const { return v.scalars.rz[column] / v.scalars.pq[column]; }
  SHARDMAT_BOTH Factors factors(int column) const {
    return {v.monitor.goes_on(column) && v.scalars.pq[column] > 0, static_cast<T>(alpha(column))};
  }
  SHARDMAT_BOTH Sums<kSums> entry(const Factors& f, const Place& place) const {
    const T r = v.r[place.at] - f.alpha * v.q[place.at];
    v.r[place.at] = r;
    if constexpr (kSums == 0) return {};
    else {
      const double rd = static_cast<double>(r), z = static_cast<double>(v.z_of(place, r));
      return {{rd * z, square(v.norm, rd, z)}};
    }
  }
  SHARDMAT_BOTH void finish(int column, const Sums<kSums>& sums) const {
    if (!v.monitor.goes_on(column)) return;
    const CgScalars& s = v.scalars;
    if (!(s.pq[column] > 0))
      return v.monitor.stop(column, s.pq[column] <= 0 ? Reason::diverged_indefinite_matrix : Reason::diverged_nan);
    s.alpha[column] = alpha(column);
    s.rz_before[column] = s.rz[column];
    if constexpr (kSums > 0) {
      s.rz[column] = sums.of[0];
      s.squares[column] = sums.of[1];
    }
  }
};

/// The sums of the flexible variant: r·z, the square of the norm, and z·q.
template <class T>
struct CgFlexibleSums {
  CgVectors<T, Scaling::separate> v;
  static constexpr int kSums = 3;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<3> entry(const Factors&, const Place& place) const {
    const double r = static_cast<double>(v.r[place.at]), z = static_cast<double>(v.z[place.at]);
    return {{r * z, square(v.norm, r, z), z * static_cast<double>(v.q[place.at])}};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<3>& sums) const {
    v.scalars.rz[column] = sums.of[0];
    v.scalars.squares[column] = sums.of[1];
    v.scalars.zq[column] = sums.of[2];
  }
};

/// p = z: the first direction.
template <class T, Scaling kScaling>
struct CgFirstDirection {
  CgVectors<T, kScaling> v;
  static constexpr int kSums = 0;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<0> entry(const Factors&, const Place& place) const {
    v.p[place.at] = v.z_at(place);
    return {};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<0>&) const { v.turn(column, 0); }
};

/// p = z + beta·p, or p = z in the first one: an iteration begins.
template <class T>
struct CgNextDirection {
  CgVectors<T, Scaling::separate> v;
  bool is_first;
  static constexpr bool kBackward = true;
  static constexpr int kSums = 0;
  struct Factors {
    bool works;
    T beta;
  };
  SHARDMAT_BOTH Factors factors(int column) const {
    return {v.monitor.goes_on(column), static_cast<T>(v.scalars.beta(column))};
  }
  SHARDMAT_BOTH Sums<0> entry(const Factors& f, const Place& place) const {
    const T z = v.z[place.at];
    v.p[place.at] = is_first ? z : z + f.beta * v.p[place.at];
    return {};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<0>&) const { v.turn(column, is_first ? 0 : v.scalars.beta(column)); }
};

/// x += alpha·p and r -= alpha·q with alpha = r·z / p·q, and the square of ‖r‖.
template <class T>
struct CgUpdate {
  CgVectors<T, Scaling::separate> v;
  static constexpr int kSums = 1;
  using Factors = typename CgResidual<T, Scaling::separate>::Factors;
  SHARDMAT_BOTH Factors factors(int column) const { return CgResidual<T, Scaling::separate>{v}.factors(column); }
  SHARDMAT_BOTH Sums<1> entry(const Factors& f, const Place& place) const {
    v.x[place.at] += f.alpha * v.p[place.at];
    const T r = v.r[place.at] - f.alpha * v.q[place.at];
    v.r[place.at] = r;
    return {{static_cast<double>(r) * static_cast<double>(r)}};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<1>& sums) const {
    CgResidual<T, Scaling::separate>{v}.finish(column, {});
    v.scalars.next_squares[column] = sums.of[0];
  }
};

/// Ends such an iteration, after the sum over the ranks. r·z of the new r is known when the next one begins. Until then it
/// is taken from the share that it had in the square of the norm.
struct CgNote : NoEntries {
  CgScalars scalars;
  Monitor monitor;
  double least;  ///< a square below this is rounding errors
  SHARDMAT_BOTH void finish(int column, const Sums<0>&) const {
    if (!monitor.goes_on(column)) return;
    const CgScalars& s = scalars;
    const double now = s.next_squares[column];
    s.rz[column] = now == 0                    ? 0
                   : s.squares[column] > least ? s.rz[column] / s.squares[column] * now
                                               : static_cast<double>(NAN);
    s.squares[column] = now;
    monitor.note_coefficients(column, s.alpha[column], s.turn[column]);
    monitor.note(column, sqrt(now));
  }
};

/// x += alpha·p, p = z + beta·p; ends the iteration.
template <class T, Scaling kScaling>
struct CgDirection {
  CgVectors<T, kScaling> v;
  static constexpr bool kBackward = true;
  static constexpr int kSums = 0;
  struct Factors {
    bool works;
    T alpha, beta;
  };
  SHARDMAT_BOTH Factors factors(int column) const {
    const CgScalars& s = v.scalars;
    return {v.monitor.goes_on(column), static_cast<T>(s.alpha[column]), static_cast<T>(s.beta(column))};
  }
  SHARDMAT_BOTH Sums<0> entry(const Factors& f, const Place& place) const {
    const T p = v.p[place.at];
    v.x[place.at] += f.alpha * p;
    v.p[place.at] = v.z_at(place) + f.beta * p;
    return {};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<0>&) const {
    if (!v.monitor.goes_on(column)) return;
    v.monitor.note_coefficients(column, v.scalars.alpha[column], v.scalars.turn[column]);
    v.monitor.note(column, sqrt(v.scalars.squares[column]));
    v.turn(column, v.scalars.beta(column));
  }
};

}  // namespace shardmat::krylov

#define SHARDMAT_CG_STEPS(MAKE, T)             \
  MAKE(CgResidual<T, Scaling::none>)           \
  MAKE(CgResidual<T, Scaling::diagonal>)       \
  MAKE(CgResidual<T, Scaling::separate>)       \
  MAKE(CgFlexibleSums<T>)                      \
  MAKE(CgFirstDirection<T, Scaling::none>)     \
  MAKE(CgFirstDirection<T, Scaling::diagonal>) \
  MAKE(CgFirstDirection<T, Scaling::separate>) \
  MAKE(CgNextDirection<T>)                     \
  MAKE(CgUpdate<T>)                            \
  MAKE(CgDirection<T, Scaling::none>)          \
  MAKE(CgDirection<T, Scaling::diagonal>)      \
  MAKE(CgDirection<T, Scaling::separate>)
#define SHARDMAT_CG_SCALAR_STEPS(MAKE) MAKE(CgNote)
