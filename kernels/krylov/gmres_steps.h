// Restarted GMRES with right preconditioning (Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., Alg. 9.5), and
// flexible GMRES (Alg. 9.6). Classical Gram-Schmidt takes one sum over the ranks a step whatever its number, and is done a
// second time where GmresDecide finds that the basis may lose its orthogonality; modified Gram-Schmidt takes one sum for
// each vector of the basis.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "kernels/krylov/basis_products.h"
#include "kernels/krylov/residual.h"

namespace shardmat::krylov {

/// Vectors of the basis that one pass takes at most: what registers hold. There are passes of 8, 16 and 32.
constexpr int kBasisWidthOnHost = 8, kBasisWidthOnGpu = 32;

/// Scalars in device memory. Each array has a number for each column at [i · columns + column].
struct GmresScalars {
  int columns, restart;
  double* h;                    ///< restart + 2: of the first orthogonalisation; then w·w
  double* again;                ///< restart + 2: of the second
  double* r;                    ///< restart · (restart + 1): column j of the triangle at j · (restart + 1)
  double* g;                    ///< restart + 1: the rotated right-hand side
  double *cos, *sin;            ///< restart
  double* y;                    ///< restart: factors of the basis in x
  double* inverse;              ///< 1 / norm of the basis vector that comes next
  double* steps;                ///< of the present cycle
  double* squares;              ///< of the norm of the residual at the start of the cycle
  double *kept_r, *kept_steps;  ///< of the cycle with most steps so far
  double* loss;                 ///< a bound of ‖I − VᵀV‖ for the basis V
  double* second;               ///< 1: the present vector is made orthogonal a second time

  SHARDMAT_BOTH std::int64_t at(std::int64_t i, int column) const { return i * columns + column; }
};

/// A cycle begins.
struct GmresBegin : NoEntries {
  GmresScalars s;
  SHARDMAT_BOTH void finish(int column, const Sums<0>&) const {
    const double beta = sqrt(s.squares[column]);
    for (int i = 0; i <= s.restart; ++i) s.g[s.at(i, column)] = i == 0 ? beta : 0;
    s.inverse[column] = beta > 0 ? 1 / beta : 0;
    s.steps[column] = 0;
    s.loss[column] = 0;
  }
};

/// Entries of a pass over the basis that a thread of a GPU takes together: in f32 one entry leaves too few bytes under way.
template <class T>
constexpr int kBasisAbreast = sizeof(T) < 8 ? 2 : 1;
template <class T>
bool are_abreast(std::initializer_list<const T*> vectors) {
  return std::all_of(vectors.begin(), vectors.end(), Abreast<T, kBasisAbreast<T>>::is_aligned);
}

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
    store(place, Abreast<T, 1>{{f.inverse * v[place.at]}});
    return {};
  }
  template <int N>
  SHARDMAT_BOTH void store(const Place& place, const Abreast<T, N>& values) const {
    values.store(v + place.at);
    if constexpr (kScaling == Scaling::none) values.store(slot + place.at);
    if constexpr (kScaling == Scaling::diagonal) scaled(place, values).store(slot + place.at);
  }
  template <int N>
  SHARDMAT_BOTH Abreast<T, N> scaled(const Place& place, const Abreast<T, N>& values) const {
    Abreast<T, N> by = Abreast<T, N>::load(scale + place.item);
    SHARDMAT_UNROLL
    for (int n = 0; n < N; ++n) by.of[n] *= values.of[n];
    return by;
  }
  SHARDMAT_BOTH void finish(int, const Sums<0>&) const {}
};

/// Vectors of the basis that a pass reads together. Factors are read where they are used: registers are for the vectors.
template <class T, int W>
struct GmresBasis {
  const T* v;
  std::int64_t apart;  ///< values from one vector to the next
  int count;           ///< 1 … W
  const double* h;     ///< a factor for each vector and column
  int columns;

  bool aligned() const { return are_abreast({v, v + apart}); }
  SHARDMAT_BOTH int there(int i) const { return i < count ? i : count - 1; }
  template <int N>
  SHARDMAT_BOTH Abreast<T, N> at(int i, const Place& place) const {
    return Abreast<T, N>::load(v + there(i) * apart + place.at);
  }
  /// Σ h_i·v_i, some vectors at a time. Beyond `count` the last vector is read again, so that no load waits for a branch.
  template <int N>
  SHARDMAT_BOTH Abreast<T, N> combine(const Place& place) const {
    constexpr int kAtOnce = 8;
    Abreast<T, N> sum{};
    SHARDMAT_NO_UNROLL
    for (int first = 0; first < W; first += kAtOnce) {
      if (W > kAtOnce && first >= count) break;
      Abreast<T, N> value[kAtOnce];
      T factor[kAtOnce];
      SHARDMAT_UNROLL
      for (int i = 0; i < kAtOnce; ++i) {
        value[i] = at<N>(first + i, place);
        factor[i] = static_cast<T>(h[there(first + i) * columns + place.column]);
      }
      SHARDMAT_UNROLL
      for (int i = 0; i < kAtOnce; ++i) SHARDMAT_UNROLL
      for (int n = 0; n < N; ++n) sum.of[n] += first + i < count ? factor[i] * value[i].of[n] : T{0};
    }
    return sum;
  }
  /// v_i·w for each vector; with `self` w·w follows the last one.
  SHARDMAT_BOTH Sums<W> dots(const Place& place, T w, bool self) const {
    const double w_at = static_cast<double>(w);
    Sums<W> sums;
    SHARDMAT_UNROLL
    for (int i = 0; i < W; ++i) {
      const T with = self && i == count ? w : at<1>(i, place).of[0];
      sums.of[i] = w_at * static_cast<double>(with);
    }
    return sums;
  }
  SHARDMAT_BOTH void store(double* to, int column, const Sums<W>& sums, bool self) const {
    SHARDMAT_UNROLL
    for (int i = 0; i < W; ++i)
      if (i < count + (self ? 1 : 0)) to[i * columns + column] = sums.of[i];
  }
};

/// h_i = v_i·w. `self`: h_count = w·w, too. REQUIRES: count < W then.
template <class T, int W>
struct GmresDots {
  GmresBasis<T, W> basis;
  T* w;
  bool self;
  double* h;
  static constexpr bool kForGpus = W > kBasisWidthOnHost;
  static constexpr int kSums = W;
  static constexpr bool kBackward = true;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<W> entry(const Factors&, const Place& place) const { return basis.dots(place, w[place.at], self); }
  SHARDMAT_BOTH void finish(int column, const Sums<W>& sums) const { basis.store(h, column, sums, self); }
  BasisProducts<T> basis_products() const { return {basis.v, basis.apart, basis.count, self, w, nullptr, h, kBackward}; }
};

/// w·w.
template <class T>
struct GmresSquare {
  const T* w;
  double* square;
  static constexpr int kSums = 1;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<1> entry(const Factors&, const Place& place) const {
    const double w_at = static_cast<double>(w[place.at]);
    return {{w_at * w_at}};
  }
  SHARDMAT_BOTH void finish(int column, const Sums<1>& sums) const { square[column] = sums.of[0]; }
};

/// w += sign · Σ h_i·v_i, times the preconditioner's diagonal if there is one.
template <class T, int W>
struct GmresAdd {
  GmresBasis<T, W> basis;
  T* w;
  double sign;
  const T* scale;  ///< one entry a row; or null
  static constexpr bool kForGpus = W > kBasisWidthOnHost;
  static constexpr int kSums = 0, kAbreast = kBasisAbreast<T>;
  using Factors = Works;
  bool aligned() const { return basis.aligned() && are_abreast<T>({w, scale}); }
  SHARDMAT_BOTH Factors factors(int) const { return {true}; }
  SHARDMAT_BOTH Sums<0> entry(const Factors& f, const Place& place) const { return entries<1>(f, place); }
  template <int N>
  SHARDMAT_BOTH Sums<0> entries(const Factors&, const Place& place) const {
    const Abreast<T, N> sum = basis.template combine<N>(place);
    Abreast<T, N> to = Abreast<T, N>::load(w + place.at);
    SHARDMAT_UNROLL
    for (int n = 0; n < N; ++n) {
      const T change = static_cast<T>(sign) * sum.of[n];
      to.of[n] += scale != nullptr ? scale[place.item + n] * change : change;
    }
    to.store(w + place.at);
    return {};
  }
  SHARDMAT_BOTH void finish(int, const Sums<0>&) const {}
};

/// w −= Σ h_i·v_i, then again_i = v_i·w and again_count = w·w: memory is read once for both. Columns whose `second` is 0
/// stay as they are. REQUIRES: count < W.
template <class T, int W>
struct GmresAddDots {
  GmresBasis<T, W> basis;
  T* w;
  double* again;
  const double* second;
  static constexpr bool kForGpus = W > kBasisWidthOnHost;
  static constexpr int kSums = W;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int column) const { return {second[column] != 0}; }
  SHARDMAT_BOTH Sums<W> entry(const Factors&, const Place& place) const {
    const T w_at = w[place.at] - basis.template combine<1>(place).of[0];
    w[place.at] = w_at;
    return basis.dots(place, w_at, true);  // the vectors are in the cache
  }
  SHARDMAT_BOTH void finish(int column, const Sums<W>& sums) const {
    if (second[column] != 0) basis.store(again, column, sums, true);
  }
  BasisProducts<T> basis_products() const {
    return {basis.v, basis.apart, basis.count, true, w, basis.h, again, false, second};
  }
};

/// v = (w − Σ h_i·v_i) / its norm in place of w: the last pass of a step and GmresSpread of the next one.
template <class T, int W, Scaling kScaling>
struct GmresAddSpread {
  GmresBasis<T, W> basis;
  GmresSpread<T, kScaling> spread;
  static constexpr bool kForGpus = W > kBasisWidthOnHost;
  static constexpr int kSums = 0, kAbreast = kBasisAbreast<T>;
  static constexpr bool kBackward = true;
  using Factors = typename GmresSpread<T, kScaling>::Factors;
  bool aligned() const { return basis.aligned() && are_abreast<T>({spread.v, spread.slot, spread.scale}); }
  SHARDMAT_BOTH Factors factors(int column) const { return spread.factors(column); }
  SHARDMAT_BOTH Sums<0> entry(const Factors& f, const Place& place) const { return entries<1>(f, place); }
  template <int N>
  SHARDMAT_BOTH Sums<0> entries(const Factors& f, const Place& place) const {
    const Abreast<T, N> sum = basis.template combine<N>(place);
    Abreast<T, N> values = Abreast<T, N>::load(spread.v + place.at);
    SHARDMAT_UNROLL
    for (int n = 0; n < N; ++n) values.of[n] = f.inverse * (values.of[n] - sum.of[n]);
    spread.store(place, values);
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

/// The bound of ‖I − VᵀV‖ with one vector more, which is what `left` remains of w after w −= V·h; `h`, `w`: norms. The
/// vector is not orthogonal to V by (I − VᵀV)·h and what rounding leaves; its norm, the root of ‖w‖² − ‖h‖², is not 1
/// likewise.
SHARDMAT_BOTH double loss_with(double loss, double h, double w, double left, double rounding) {
  constexpr double kOfSum = 16;  // rounding errors of a sum over many rows, in those of one entry
  if (!(left > 0)) return 1;
  const double beside = (loss * h + kOfSum * rounding * w) / left;
  const double along = (loss * h * h + kOfSum * rounding * w * w) / (left * left);
  return sqrt(loss * loss + 2 * beside * beside + along * along);
}

/// Step j has its products again = Vᵀw and w·w: must w be made orthogonal twice? GMRES keeps its convergence, and its norms
/// of residuals their first digits, while ‖I − VᵀV‖ is well below 1 (A. Greenbaum, M. Rozložník, Z. Strakoš, BIT 37, 1997).
/// The criterion of Daniel, Gragg, Kaufman and Stewart looks at the step alone. It asks for the second time in nearly all
/// steps of a preconditioned matrix, as most of A·M·v lies along v; this one asks in 3 to 40 of 100.
struct GmresDecide : NoEntries {
  GmresScalars s;
  int j;
  double rounding;
  static constexpr double kMostLoss = 0.01, kLeastLeft = 1e-6;  ///< kLeastLeft: of squares; below it the norm has few digits
  SHARDMAT_BOTH void finish(int column, const Sums<0>&) const {
    const double w = s.again[s.at(j + 1, column)];
    double h = 0;
    for (int i = 0; i <= j; ++i) h += s.again[s.at(i, column)] * s.again[s.at(i, column)];
    const double left = w - h;
    const bool once =
        w == 0 || (left > kLeastLeft * w && loss_with(s.loss[column], sqrt(h), sqrt(w), sqrt(left), rounding) <= kMostLoss);
    s.second[column] = once ? 0 : 1;
    s.h[s.at(j + 1, column)] = w;
    for (int i = 0; i <= j; ++i) s.h[s.at(i, column)] = once ? 0 : s.again[s.at(i, column)];
  }
};

/// Before products of step j are summed over the ranks once more: those of columns that are not made orthogonal twice are
/// sums already, which one rank alone may bring. For all other ranks.
struct GmresLeaveSums : NoEntries {
  GmresScalars s;
  int j;
  SHARDMAT_BOTH void finish(int column, const Sums<0>&) const {
    if (s.second[column] != 0) return;
    for (int i = 0; i <= j + 1; ++i) s.again[s.at(i, column)] = 0;
  }
};

/// Step j ends: its column of the Hessenberg matrix is rotated, which gives the norm of the residual.
struct GmresRotate : NoEntries {
  GmresScalars s;
  Monitor monitor;
  int j;
  bool classical;   ///< `again` holds what is still subtracted
  double rounding;  ///< what is below this times ‖w‖ is 0: x is then exact within the space so far
  SHARDMAT_BOTH void finish(int column, const Sums<0>&) const {
    s.inverse[column] = 0;
    if (!monitor.goes_on(column)) return;
    double* const r = s.r + static_cast<std::int64_t>(j) * (s.restart + 1) * s.columns;
    const double before = s.h[s.at(j + 1, column)];  // w·w
    double last = 0, left = classical ? s.again[s.at(j + 1, column)] : before;
    double upper = 0;           // what the rotations so far made of entry i
    constexpr int kAtOnce = 8;  // entries whose loads do not wait for each other
    for (int first = 0; first <= j; first += kAtOnce) {
      double h[kAtOnce], again[kAtOnce], c[kAtOnce], sine[kAtOnce];
      for (int k = 0; k < kAtOnce; ++k) {
        const int i = first + k <= j ? first + k : j, rotation = i > 0 ? i - 1 : 0;
        h[k] = s.h[s.at(i, column)], again[k] = classical ? s.again[s.at(i, column)] : 0;
        c[k] = s.cos[s.at(rotation, column)], sine[k] = s.sin[s.at(rotation, column)];
      }
      for (int k = 0; k < kAtOnce; ++k) {
        const int i = first + k;
        if (i > j) break;
        const double lower = h[k] + again[k];
        last += again[k] * again[k];
        if (i > 0) r[s.at(i - 1, column)] = c[k] * upper + sine[k] * lower;
        upper = i > 0 ? c[k] * lower - sine[k] * upper : lower;
      }
    }
    const double square = left;  // before the last subtraction
    left -= last;
    const double below = left > rounding * rounding * before ? sqrt(left) : 0;
    const double diagonal = upper, length = sqrt(diagonal * diagonal + below * below);
    if (length <= rounding * sqrt(before)) return monitor.stop(column, Reason::diverged_breakdown);  // A is singular
    const double c = diagonal / length, sine = below / length, g = s.g[s.at(j, column)];
    s.cos[s.at(j, column)] = c;
    s.sin[s.at(j, column)] = sine;
    r[s.at(j, column)] = length;
    s.g[s.at(j, column)] = c * g;
    s.g[s.at(j + 1, column)] = -sine * g;
    s.inverse[column] = below > 0 ? 1 / below : 0;
    s.steps[column] = j + 1;
    if (classical) s.loss[column] = loss_with(s.loss[column], sqrt(last), sqrt(square), below, rounding);
    const double norm = sine * g;
    monitor.note(column, norm < 0 ? -norm : norm);
  }
};

/// A cycle ends: its triangle is kept if it has more steps than those before.
struct GmresKeep : NoEntries {
  GmresScalars s;
  SHARDMAT_BOTH void finish(int column, const Sums<0>&) const {
    if (s.steps[column] <= s.kept_steps[column]) return;
    s.kept_steps[column] = s.steps[column];
    const int steps = static_cast<int>(s.steps[column]);
    for (int j = 0; j < steps; ++j)
      for (int i = 0; i <= j; ++i) {
        const std::int64_t at = s.at(std::int64_t{j} * (s.restart + 1) + i, column);
        s.kept_r[at] = s.r[at];
      }
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

#define SHARDMAT_GMRES_STEPS_OF_WIDTH(MAKE, T, W) \
  MAKE(GmresDots<T, W>)                           \
  MAKE(GmresAdd<T, W>)                            \
  MAKE(GmresAddDots<T, W>)                        \
  MAKE(GmresAddSpread<T, W, Scaling::none>)       \
  MAKE(GmresAddSpread<T, W, Scaling::diagonal>)   \
  MAKE(GmresAddSpread<T, W, Scaling::separate>)
#define SHARDMAT_GMRES_STEPS(MAKE, T)        \
  MAKE(GmresSpread<T, Scaling::none>)        \
  MAKE(GmresSpread<T, Scaling::diagonal>)    \
  MAKE(GmresSpread<T, Scaling::separate>)    \
  MAKE(GmresSquare<T>)                       \
  MAKE(GmresAddOne<T>)                       \
  SHARDMAT_GMRES_STEPS_OF_WIDTH(MAKE, T, 8)  \
  SHARDMAT_GMRES_STEPS_OF_WIDTH(MAKE, T, 16) \
  SHARDMAT_GMRES_STEPS_OF_WIDTH(MAKE, T, 32)
#define SHARDMAT_GMRES_SCALAR_STEPS(MAKE) \
  MAKE(GmresBegin)                        \
  MAKE(GmresDecide)                       \
  MAKE(GmresLeaveSums)                    \
  MAKE(GmresRotate)                       \
  MAKE(GmresKeep)                         \
  MAKE(GmresSolve)
