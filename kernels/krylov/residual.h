// What methods share: how the preconditioner enters a pass, and which norm of the residual decides.
#pragma once

#include "kernels/krylov/monitor.h"
#include "kernels/krylov/norm.h"

namespace shardmat::krylov {

/// How z = M·r is found.
enum class Scaling {
  none,      ///< z = r
  diagonal,  ///< z = scale·r, entry by entry
  separate,  ///< z is computed by passes of its own
};

/// The share of one entry in the square of the norm.
SHARDMAT_BOTH double square(Norm norm, double r, double z) {
  return norm == Norm::unpreconditioned ? r * r : norm == Norm::preconditioned ? z * z : r * z;
}

/// A residual r and its z = M·r.
template <class T, Scaling kScaling>
struct Preconditioned {
  T* r;
  const T* z;      ///< separate
  const T* scale;  ///< diagonal; one entry a row

  SHARDMAT_BOTH T z_of(const Place& place, T of_r) const {
    if constexpr (kScaling == Scaling::separate) return z[place.at];
    else if constexpr (kScaling == Scaling::diagonal) return scale[place.item] * of_r;
    else return of_r;
  }
  SHARDMAT_BOTH T z_at(const Place& place) const { return z_of(place, r[place.at]); }
};

/// Sums of r·z and of the square of the norm.
template <class T, Scaling kScaling>
struct ResidualSums {
  Preconditioned<T, kScaling> v;
  Norm norm;
  double* rz;
  double* squares;
  static constexpr int kSums = 2;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<2> entry(const Factors&, const Place& place) const {
    const double r = static_cast<double>(v.r[place.at]), z = static_cast<double>(v.z_at(place));
    return {{r * z, square(norm, r, z)}};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<2>& sums) const {
    rz[column] = sums.of[0];
    squares[column] = sums.of[1];
  }
};

/// Of a square of ‖r‖ below this, rounding is all that is left.
template <class T>
inline constexpr double kLeastSquare = sizeof(T) == sizeof(double) ? 1e-280 : 1e-60;

/// The square of ‖r‖ where M·r comes later, or never: the last residual of a solve needs none. `share`: r·M·r of the
/// residual before in the square of its norm. After the sums over the ranks LateNaturalNorm makes r·M·r of it.
template <class T>
struct LateResidualSums {
  const T* r;
  double *rz, *squares, *share;
  static constexpr int kSums = 1;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<1> entry(const Factors&, const Place& place) const {
    const double r_at = static_cast<double>(r[place.at]);
    return {{r_at * r_at}};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<1>& sums) const {
    share[column] =
        squares[column] > kLeastSquare<T> && rz[column] > 0 ? rz[column] / squares[column] : static_cast<double>(NAN);
    rz[column] = 0;
    squares[column] = sums.of[0];
  }
};

/// NaN if the residual before was too small to tell.
struct LateNaturalNorm : NoEntries {
  double* rz;
  const double *squares, *share;
  SHARDMAT_BOTH void finish(int column, const Sums<0>&) const {
    rz[column] = squares[column] == 0 ? 0 : share[column] * squares[column];
  }
};

}  // namespace shardmat::krylov

#define SHARDMAT_RESIDUAL_STEPS(MAKE, T)   \
  MAKE(ResidualSums<T, Scaling::none>)     \
  MAKE(ResidualSums<T, Scaling::diagonal>) \
  MAKE(ResidualSums<T, Scaling::separate>) \
  MAKE(LateResidualSums<T>)
#define SHARDMAT_RESIDUAL_SCALAR_STEPS(MAKE) MAKE(LateNaturalNorm)
