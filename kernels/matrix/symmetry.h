// How symmetric a matrix is: exact if the whole matrix is in memory, else estimated from a sample of pairs (a_ij, a_ji).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/base/types.h"
#include "kernels/matrix/csr.h"

namespace shardmat {

/// A matrix is symmetric within rounding if no relative_difference() is above this.
constexpr double symmetry_tolerance(ValueType type) { return type == ValueType::f64 ? 1e-10 : 1e-5; }

/// Of a_ij and a_ji, relative to the larger of them, or to the rows if these have larger entries: the scale of a row is its
/// largest magnitude, and the row with the smaller scale counts. An entry that is not stored is 0.
inline double relative_difference(double one, double other, double scale_of_row, double scale_of_other_row) {
  if (one == other) return 0;
  const double scale = std::max({std::abs(one), std::abs(other), std::min(scale_of_row, scale_of_other_row)});
  return std::abs(one / scale - other / scale);
}

struct Symmetry {
  bool exact = true;              ///< all off-diagonal entries were checked; false: a sample
  std::int64_t off_diagonal = 0;  ///< checked stored entries a_ij, i ≠ j
  std::int64_t mirrored = 0;      ///< checked entries for which a_ji is stored, too
  std::int64_t equal = 0;         ///< checked entries for which a_ji is stored with the same value
  double largest_difference = 0;  ///< largest |a_ij - a_ji| over pairs that are both stored
  double largest_relative = 0;    ///< largest relative_difference() over all pairs
  bool within_rounding(ValueType type) const { return largest_relative <= symmetry_tolerance(type); }
};

/// Parallel; makes a binary search in row j for each a_ij above the diagonal, and for those below it if the pattern is not
/// symmetric. REQUIRES: a valid square matrix with ascending columns, with the row_ptr of all rows.
Symmetry symmetry(const CsrView& matrix);

/// The same for a matrix that comes slice by slice. A hash of {i, j} decides whether a_ij is checked, so a_ji is checked,
/// too. The checked share is halved whenever more than `most` entries are kept; the result for a small matrix is exact.
/// Takes 8 bytes a row.
class SymmetrySample {
 public:
  explicit SymmetrySample(std::int64_t most = std::int64_t{1} << 20) : most_(most) {}
  /// REQUIRES: valid rows of a square matrix, each given once.
  void add(std::int64_t first_row, const CsrView& slice);
  Symmetry result();

 private:
  struct Entry {
    std::int64_t low, high;  ///< min(i, j), max(i, j)
    double value;
  };
  bool taken(std::int64_t low, std::int64_t high) const;
  double scale(std::int64_t row) const;

  std::int64_t most_;
  std::uint64_t mask_ = 0;  ///< pairs whose hash has any of these bits are skipped
  std::vector<Entry> kept_;
  std::vector<double> scales_;  ///< of the rows
};

}  // namespace shardmat
