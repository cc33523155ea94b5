// Products of small dense row-major blocks, with instances for the sizes that occur most.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/host/lanes.h"
#include "runtime/solvers/loop/preconditioner_options.h"

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

/// A row of kM values in registers.
template <int kM>
class BlockRow {
  static constexpr int kFours = kM / 4, kEnd = kFours * 4;

 public:
  SHARDMAT_INLINE BlockRow() {}
  SHARDMAT_INLINE explicit BlockRow(const double* from) {
    for (int c = 0; c < kFours; ++c) four_[c] = load<4>(from + 4 * c);
    if constexpr (kM % 4 >= 2) two_ = load<2>(from + kEnd);
    if constexpr (kM % 2 == 1) one_ = from[kM - 1];
  }
  SHARDMAT_INLINE void add(double factor, const BlockRow& other) {
    for (int c = 0; c < kFours; ++c) four_[c] += factor * other.four_[c];
    if constexpr (kM % 4 >= 2) two_ += factor * other.two_;
    if constexpr (kM % 2 == 1) one_ += factor * other.one_;
  }
  SHARDMAT_INLINE void put(double* to) const {
    for (int c = 0; c < kFours; ++c) store(to + 4 * c, four_[c]);
    if constexpr (kM % 4 >= 2) store(to + kEnd, two_);
    if constexpr (kM % 2 == 1) to[kM - 1] = one_;
  }

 private:
  Lanes<double, 4> four_[kFours > 0 ? kFours : 1];
  Lanes<double, 2> two_;
  double one_;
};

/// Rows of `out` += the sums over k of factor(row, k)·(row k of `b`), for `rows` rows of m values; b has s rows.
template <int kRows, int kS, int kM, class Factor>
SHARDMAT_INLINE void add_row_sums(const Factor& factor, const double* b, double* out, int rows, int s, int m) {
  if constexpr (kRows > 0) {
    BlockRow<kM> row[kS];
    for (int k = 0; k < kS; ++k) row[k] = BlockRow<kM>(b + k * kM);
    for (int r = 0; r < kRows; ++r) {
      BlockRow<kM> sum(out + r * kM);
      for (int k = 0; k < kS; ++k) sum.add(factor(r, k), row[k]);
      sum.put(out + r * kM);
    }
  } else {
    for (int r = 0; r < rows; ++r)
      for (int k = 0; k < s; ++k)
        for (int c = 0; c < m; ++c) out[r * m + c] += factor(r, k) * b[k * m + c];
  }
}

/// out += a·b, with a of s × s and b of s × m.
template <int kS, int kM>
SHARDMAT_INLINE void add_product(const double* a, const double* b, double* out, int s_at_run, int m_at_run) {
  const int s = kS > 0 ? kS : s_at_run, m = kM > 0 ? kM : m_at_run;
  add_row_sums<kS, kS, kM>([&](int r, int k) SHARDMAT_INLINE_LAMBDA { return a[r * s + k]; }, b, out, s, s, m);
}

/// out += aᵀ·b, with a and b of s × m; out of m × m.
template <int kS, int kM>
SHARDMAT_INLINE void add_transposed_product(const double* a, const double* b, double* out, int s_at_run, int m_at_run) {
  const int s = kS > 0 ? kS : s_at_run, m = kM > 0 ? kM : m_at_run;
  add_row_sums<kM, kS, kM>([&](int r, int k) SHARDMAT_INLINE_LAMBDA { return a[k * m + r]; }, b, out, m, s, m);
}

/// Inverts a symmetric s × s block along the directions in which it is regular: those of the others become 0. s is at
/// most kMostUnknowns.
void invert_symmetric(const double* a, double* inverse, int s);

}  // namespace shardmat::multigrid
