// Restarted GMRES with right preconditioning (Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., Alg. 9.5), and
// flexible GMRES (Alg. 9.6). Classical Gram-Schmidt, done twice, takes two sums over the ranks a step whatever its number;
// modified Gram-Schmidt takes one for each vector of the basis.
#pragma once

#include "kernels/krylov/residual.h"

namespace shardmat::krylov {

constexpr int kDotsAtOnce = kMostSums;  ///< basis vectors that one pass multiplies with w
constexpr int kVectorsAtOnce = 16;      ///< basis vectors that one pass adds up

/// Scalars in device memory. Each array has a number for each column at [i · columns + column].
struct GmresScalars {
  int columns, restart;
  double* h;          ///< restart + 2: of the first orthogonalisation; then w·w
  double* again;      ///< restart + 2: of the second
  double* r;          ///< restart · (restart + 1): column j of the triangle at j · (restart + 1)
  double* g;          ///< restart + 1: the rotated right-hand side
  double *cos, *sin;  ///< restart
  double* y;          ///< restart: factors of the basis in x
  double* inverse;    ///< 1 / norm of the basis vector that comes next
  double* steps;      ///< of the present cycle
  double* squares;    ///< of the norm of the residual at the start of the cycle

  SHARDMAT_BOTH std::int64_t at(std::int64_t i, int column) const { return i * columns + column; }
};

/// r·r.
template <class T>
struct GmresNorm {
  const T* r;
  double* squares;
  static constexpr int kSums = 1;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<1> entry(const Factors&, const Place& place) const {
    const double r_at = static_cast<double>(r[place.at]);
    return {{r_at * r_at}};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<1>& sums) const { squares[column] = sums.of[0]; }
};

/// A cycle begins.
struct GmresBegin : NoEntries {
  GmresScalars s;
  SHARDMAT_BOTH void finish(int column, const Sums<0>&) const {
    const double beta = sqrt(s.squares[column]);
    for (int i = 0; i <= s.restart; ++i) s.g[s.at(i, column)] = i == 0 ? beta : 0;
    s.inverse[column] = beta > 0 ? 1 / beta : 0;
    s.steps[column] = 0;
  }
};

/// v = w / ‖w‖ in place, and its M·v for the product unless the preconditioner is separate.
template <class T, Scaling kScaling>
struct GmresSpread {
  T* v;
  T* slot;
  const T* scale;
  const double* inverse;
  static constexpr int kSums = 0;
  struct Factors {
    bool works;
    T inverse;
  };
  SHARDMAT_BOTH Factors factors(int column) const { return {true, static_cast<T>(inverse[column])}; }
  SHARDMAT_BOTH Sums<0> entry(const Factors& f, const Place& place) const {
    const T value = f.inverse * v[place.at];
    v[place.at] = value;
    if constexpr (kScaling == Scaling::none) slot[place.at] = value;
    if constexpr (kScaling == Scaling::diagonal) slot[place.at] = scale[place.item] * value;
    return {};
  }
  SHARDMAT_BOTH void finish(int, const Sums<0>&) const {}
};

/// h[first + i] = v_i·w for `count` vectors, `apart` values from one to the next. With `self`, w·w follows the last one.
template <class T>
struct GmresDots {
  const T *v, *w;
  std::int64_t apart;
  int count;
  bool self;
  double* h;  ///< where the first goes
  int columns;
  static constexpr int kSums = kDotsAtOnce;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<kSums> entry(const Factors&, const Place& place) const {
    const double w_at = static_cast<double>(w[place.at]);
    Sums<kSums> sums;
    for (int i = 0; i < kSums; ++i) {
      const T* const from = i < count ? v + i * apart : w;
      sums.of[i] = i < count || (self && i == count) ? w_at * static_cast<double>(from[place.at]) : 0;
    }
    return sums;
  }
  SHARDMAT_BOTH void finish(int column, const Sums<kSums>& sums) const {
    for (int i = 0; i < count + (self ? 1 : 0); ++i) h[i * columns + column] = sums.of[i];
  }
};

/// w += sign · Σ h_i·v_i for at most kVectorsAtOnce vectors, times the preconditioner's diagonal if there is one.
template <class T>
struct GmresAdd {
  const T* v;
  T* w;
  std::int64_t apart;
  int count;
  double sign;
  const double* h;
  const T* scale;  ///< one entry a row; or null
  int columns;
  static constexpr int kSums = 0;
  struct Factors {
    bool works;
    T of[kVectorsAtOnce];
  };
  SHARDMAT_BOTH Factors factors(int column) const {
    Factors f{true, {}};
    for (int i = 0; i < count; ++i) f.of[i] = static_cast<T>(sign * h[i * columns + column]);
    return f;
  }
  SHARDMAT_BOTH Sums<0> entry(const Factors& f, const Place& place) const {
    T sum = 0;
    for (int i = 0; i < kVectorsAtOnce; ++i)
      if (i < count) sum += f.of[i] * v[i * apart + place.at];
    w[place.at] += scale != nullptr ? scale[place.item] * sum : sum;
    return {};
  }
  SHARDMAT_BOTH void finish(int, const Sums<0>&) const {}
};

/// x += v.
template <class T>
struct GmresAddOne {
  const T* v;
  T* x;
  static constexpr int kSums = 0;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<0> entry(const Factors&, const Place& place) const {
    x[place.at] += v[place.at];
    return {};
  }
  SHARDMAT_BOTH void finish(int, const Sums<0>&) const {}
};

/// Step j ends: its column of the Hessenberg matrix is rotated, which gives the norm of the residual.
struct GmresRotate : NoEntries {
  GmresScalars s;
  Monitor monitor;
  int j;
  bool twice;       ///< orthogonalised twice
  double rounding;  ///< what is below this times ‖w‖ is 0: x is then exact within the space so far
  SHARDMAT_BOTH void finish(int column, const Sums<0>&) const {
    s.inverse[column] = 0;
    if (!monitor.goes_on(column)) return;
    double* const r = s.r + static_cast<std::int64_t>(j) * (s.restart + 1) * s.columns;
    const double before = s.h[s.at(j + 1, column)];  // w·w
    double left = twice ? s.again[s.at(j + 1, column)] : before;
    for (int i = 0; i <= j; ++i) {
      const double more = twice ? s.again[s.at(i, column)] : 0;
      r[s.at(i, column)] = s.h[s.at(i, column)] + more;
      left -= twice ? more * more : 0;
    }
    const double below = left > rounding * rounding * before ? sqrt(left) : 0;
    for (int i = 0; i < j; ++i) {
      const double upper = r[s.at(i, column)], lower = r[s.at(i + 1, column)];
      r[s.at(i, column)] = s.cos[s.at(i, column)] * upper + s.sin[s.at(i, column)] * lower;
      r[s.at(i + 1, column)] = s.cos[s.at(i, column)] * lower - s.sin[s.at(i, column)] * upper;
    }
    const double diagonal = r[s.at(j, column)], length = sqrt(diagonal * diagonal + below * below);
    if (length <= rounding * sqrt(before)) return monitor.stop(column, Reason::diverged_breakdown);  // A is singular
    const double c = diagonal / length, sine = below / length, g = s.g[s.at(j, column)];
    s.cos[s.at(j, column)] = c;
    s.sin[s.at(j, column)] = sine;
    r[s.at(j, column)] = length;
    s.g[s.at(j, column)] = c * g;
    s.g[s.at(j + 1, column)] = -sine * g;
    s.inverse[column] = below > 0 ? 1 / below : 0;
    s.steps[column] = j + 1;
    const double norm = sine * g;
    monitor.note(column, norm < 0 ? -norm : norm);
  }
};

/// y from the triangle, at the end of a cycle; 0 for steps that were not taken.
struct GmresSolve : NoEntries {
  GmresScalars s;
  SHARDMAT_BOTH void finish(int column, const Sums<0>&) const {
    const int steps = static_cast<int>(s.steps[column]);
    for (int i = s.restart - 1; i >= 0; --i) {
      double sum = 0;
      if (i < steps) {
        sum = s.g[s.at(i, column)];
        for (int j = i + 1; j < steps; ++j)
          sum -= s.r[static_cast<std::int64_t>(j) * (s.restart + 1) * s.columns + s.at(i, column)] * s.y[s.at(j, column)];
        sum /= s.r[static_cast<std::int64_t>(i) * (s.restart + 1) * s.columns + s.at(i, column)];
      }
      s.y[s.at(i, column)] = sum;
    }
  }
};

}  // namespace shardmat::krylov

#define SHARDMAT_GMRES_STEPS(MAKE, T)     \
  MAKE(GmresNorm<T>)                      \
  MAKE(GmresSpread<T, Scaling::none>)     \
  MAKE(GmresSpread<T, Scaling::diagonal>) \
  MAKE(GmresSpread<T, Scaling::separate>) \
  MAKE(GmresDots<T>)                      \
  MAKE(GmresAdd<T>)                       \
  MAKE(GmresAddOne<T>)
#define SHARDMAT_GMRES_SCALAR_STEPS(MAKE) \
  MAKE(GmresBegin)                        \
  MAKE(GmresRotate)                       \
  MAKE(GmresSolve)
