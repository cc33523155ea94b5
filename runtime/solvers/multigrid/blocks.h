// Products of small dense row-major blocks, with instances for the sizes that occur most.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/host/lanes.h"
#include "runtime/solvers/loop/multigrid_options.h"

namespace shardmat::multigrid {

inline constexpr int kMostUnknowns = NearNullVectors::kMost;  ///< of a node

/// A size that is known when compiling, or 0: at run time.
template <int kSize>
using Known = std::integral_constant<int, kSize>;

/// Calls use(Known<S>, Known<M>) for blocks of s × s and s × m.
template <class Use>
void with_sizes(int s, int m, const Use& use) {
  if (s == 1 && m == 1) return use(Known<1>(), Known<1>());
  if (s == 2 && m == 2) return use(Known<2>(), Known<2>());
  if (s == 2 && m == 3) return use(Known<2>(), Known<3>());
  if (s == 3 && m == 3) return use(Known<3>(), Known<3>());
  if (s == 3 && m == 6) return use(Known<3>(), Known<6>());
  if (s == 6 && m == 6) return use(Known<6>(), Known<6>());
  if (s == 3 && m == 9) return use(Known<3>(), Known<9>());
  if (s == 9 && m == 9) return use(Known<9>(), Known<9>());
  use(Known<0>(), Known<0>());
}

/// to += factor·from, for rows of m values.
template <int kM>
SHARDMAT_INLINE void add_row(double factor, const double* from, double* to, int m_at_run) {
  if constexpr (kM == 2 || kM == 6) {  // pairs and fours, each at once
    for (int c = 0; c + 4 <= kM; c += 4) store(to + c, load<4>(to + c) + factor * load<4>(from + c));
    store(to + kM - 2, load<2>(to + kM - 2) + factor * load<2>(from + kM - 2));
  } else {
    const int m = kM > 0 ? kM : m_at_run;
    for (int c = 0; c < m; ++c) to[c] += factor * from[c];
  }
}

/// out += a·b, with a of s × s and b of s × m.
template <int kS, int kM>
SHARDMAT_INLINE void add_product(const double* a, const double* b, double* out, int s_at_run, int m_at_run) {
  const int s = kS > 0 ? kS : s_at_run, m = kM > 0 ? kM : m_at_run;
  for (int r = 0; r < s; ++r)
    for (int k = 0; k < s; ++k) add_row<kM>(a[r * s + k], b + k * m, out + r * m, m);
}

/// out += aᵀ·b, with a and b of s × m; out of m × m.
template <int kS, int kM>
SHARDMAT_INLINE void add_transposed_product(const double* a, const double* b, double* out, int s_at_run, int m_at_run) {
  const int s = kS > 0 ? kS : s_at_run, m = kM > 0 ? kM : m_at_run;
  for (int r = 0; r < m; ++r)
    for (int k = 0; k < s; ++k) add_row<kM>(a[k * m + r], b + k * m, out + r * m, m);
}

/// Inverts a symmetric s × s block along the directions in which it is regular: those of the others become 0. s is at
/// most kMostUnknowns.
void invert_symmetric(const double* a, double* inverse, int s);

}  // namespace shardmat::multigrid
